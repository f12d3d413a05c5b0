// SPDX-License-Identifier: Apache-2.0
// The calls of hash maps: what is asked of one, and what is answered. What they mean is what the
// calls of ordered maps mean, but for what needs an order, which no call asks for.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kinds/hash/format.hpp"
#include "wire/call_codec.hpp"
#include "wire/object.hpp"

namespace espalier::hash {
class HashMap;
}

namespace espalier::hash_calls {

inline constexpr std::uint32_t kKeyBytesMax = 65535;

[[nodiscard]] inline std::optional<wire::Fault> fault_of_shape(const hash::HashShape& shape,
                                                               std::string_view group) {
  if (!std::has_single_bit(shape.partitions) || shape.partitions > hash::kPartitionsMax) {
    return wire::Fault{shape.partitions, "the partitions are no power of two from 1 to 512"};
  }
  if (shape.versions > 1 || shape.reserved != 0) return wire::Fault{shape.versions};
  if (shape.group_bytes != group.size()) {
    return wire::Fault{shape.group_bytes, "the group's name is not as long as the shape says"};
  }
  if (!wire::is_group_of(group, shape.versions != 0)) {
    return wire::Fault{shape.group_bytes, wire::kVersionsOfGroup};
  }
  return std::nullopt;
}

// --- replies -------------------------------------------------------------------------------------

/// A hash map by the number that its node gave it.
struct Opened {
  std::uint32_t id = 0;
  hash::HashShape shape{};
  std::uint64_t durability = 0;  ///< that it was made with (wire/object.hpp)
  wire::OwnBytes group;          ///< its name; empty: it names none

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.id);
    message.read_version(self.durability);
    message.fixed(self.shape);
    message.rest(self.group, "the group's name", wire::kObjectNameBytesMax);
  }
  [[nodiscard]] static Opened of(const hash::HashMap& map);
  [[nodiscard]] std::optional<wire::Fault> fault() const { return fault_of_shape(shape, group); }
};

struct Numbers {
  hash::HashNumbers numbers{};

  static constexpr void fields(auto& self, auto& message) { message.fixed(self.numbers); }
};

/// A row of fields (wire/one_sided.hpp), one of them a HashPlace.
struct ReadsOpened {
  std::string_view described;

  static constexpr void fields(auto& self, auto& message) { message.rest(self.described); }
};

struct ItemFound {
  bool found = false;
  std::uint64_t version = 0;
  std::uint64_t read_version = 0;
  std::string_view value;

  static constexpr void fields(auto& self, auto& message) {
    message.flag(self.found, wire::kFound);
    message.version(self.version);
    message.read_version(self.read_version);
    message.rest(self.value);
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    const bool nothing = version == 0 && value.empty();
    return found || nothing ? std::nullopt : std::optional(wire::Fault{});
  }
};

struct ItemWritten {
  bool found = false;    ///< the key existed
  bool applied = false;  ///< the write was done, under `version`
  std::uint64_t version = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.flag(self.found, wire::kFound);
    message.flag(self.applied, wire::kApplied);
    message.version(self.version);
  }
};

/// The same of a sum.
struct Summed {
  bool found = false;
  std::uint64_t version = 0;
  std::uint64_t sum = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.flag(self.found, wire::kFound);
    message.version(self.version);
    message.fixed(self.sum);
  }
};

// --- a hash map ----------------------------------------------------------------------------------

struct Create {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::hash_create,
      .name = "hash_create",
      .summary = "makes an empty hash map; answers its number and shape",
      .right = wire::Right::admin,
      .object = wire::Names::by_name,
      .at_device = wire::AtDevice::relayed,
      .changes = true,
      .opens = true};
  using Reply = Opened;

  std::string_view name;
  hash::HashShape shape{};
  std::uint32_t durability = 0;
  std::string_view group{};

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the hash map's name");
    message.argument(self.durability, wire::kDurabilityWords);
    message.fixed(self.shape, "HashShape");
    message.rest(self.group, "the group's name", wire::kObjectNameBytesMax);
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    const auto wrong = wire::fault_of_durability(durability);
    return wrong ? wrong : fault_of_shape(shape, group);
  }
};

struct Open {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::hash_open,
                                       .name = "hash_open",
                                       .summary = "answers a hash map's number and shape",
                                       .right = wire::Right::read,
                                       .object = wire::Names::by_name,
                                       .at_device = wire::AtDevice::relayed,
                                       .opens = true};
  using Reply = Opened;

  std::string_view name;

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the hash map's name");
  }
};

struct Stats {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::hash_stats,
                                       .name = "hash_stats",
                                       .summary = "answers a hash map's numbers",
                                       .right = wire::Right::read,
                                       .object = wire::Names::by_id,
                                       .at_device = wire::AtDevice::relayed};
  using Reply = Numbers;

  std::uint32_t map = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the hash map's id");
  }
};

struct OpenReads {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::one_sided_hash,
                                       .name = "one_sided_hash",
                                       .summary = "as one_sided_open, of a hash map",
                                       .right = wire::Right::read,
                                       .object = wire::Names::all};
  using Reply = ReadsOpened;

  std::uint32_t map = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the id of the hash map to be read");
  }
};

// --- its items -----------------------------------------------------------------------------------

/// The reply of a get points into the map, or into the message: so each way reads for itself.
struct Get {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::hash_get,
      .name = "hash_get",
      .summary = "answers whether the key is there, its value, and its version",
      .right = wire::Right::read,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::by_kind};
  using Reply = ItemFound;

  std::uint32_t map = 0;
  std::string_view key;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the hash map's id");
    message.key(self.key, "the item's key", 1, kKeyBytesMax);
  }
};

struct ValueToWrite {
  using Reply = ItemWritten;

  std::uint32_t map = 0;
  std::string_view key;
  std::string_view value;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the hash map's id");
    message.key(self.key, "the item's key", 1, kKeyBytesMax);
    message.rest(self.value, "the value");
  }
};

struct Put : ValueToWrite {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::hash_put,
                                       .name = "hash_put",
                                       .summary = "inserts or replaces",
                                       .right = wire::Right::write,
                                       .object = wire::Names::by_id,
                                       .at_device = wire::AtDevice::relayed,
                                       .changes = true};
};

struct Insert : ValueToWrite {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::hash_insert,
      .name = "hash_insert",
      .summary = "writes if the key is absent; answers whether it did",
      .right = wire::Right::write,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
};

struct Update : ValueToWrite {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::hash_update,
      .name = "hash_update",
      .summary = "writes if the key is present; answers whether it did",
      .right = wire::Right::write,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
};

struct Erase {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::hash_erase,
      .name = "hash_erase",
      .summary = "removes the key if it is there; answers whether it was",
      .right = wire::Right::write,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
  using Reply = ItemWritten;

  std::uint32_t map = 0;
  std::string_view key;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the hash map's id");
    message.key(self.key, "the item's key", 1, kKeyBytesMax);
  }
};

struct CompareAndSet {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::hash_compare_and_set,
      .name = "hash_compare_and_set",
      .summary = "writes or erases if the item is as expected; else condition_failed",
      .right = wire::Right::write,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
  using Reply = ItemWritten;

  std::uint32_t map = 0;
  std::string_view key;
  wire::Comparison comparison{};
  std::string_view expected;
  std::string_view value;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the hash map's id");
    message.key(self.key, "the item's key", 1, kKeyBytesMax);
    message.fixed(self.comparison, "Comparison");
    message.sized(self.expected, self.comparison.expected_bytes, "the expected value");
    message.rest(self.value, "the new value");
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    return wire::fault_of(comparison, value.size());
  }
};

struct Add {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::hash_add,
      .name = "hash_add",
      .summary = "adds to a value of 8 bytes, an absent one being 0; answers the sum",
      .right = wire::Right::write,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
  using Reply = Summed;

  std::uint32_t map = 0;
  std::string_view key;
  std::uint64_t amount = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the hash map's id");
    message.key(self.key, "the item's key", 1, kKeyBytesMax);
    message.fixed(self.amount, "the amount, little-endian");
  }
};

// --- all items -----------------------------------------------------------------------------------

/// A piece of a walk: items of a hash map in the order of its hashes (kinds/hash/hash_walk.hpp),
/// each an ItemOfWalk, its key, its value.
struct Walked {
  bool more = false;  ///< there may be items behind these
  std::uint32_t count = 0;
  std::string_view items;

  static constexpr void fields(auto& self, auto& message) {
    message.flag(self.more, wire::kFound);
    message.version(self.count);
    message.rest(self.items, "items", hash::kWalkBytesMax);
  }
  /// A node whose answers are none could keep its client asking for ever.
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    const bool bad = (more && count == 0) || (count == 0) != items.empty();
    return bad ? std::optional(wire::Fault{count}) : std::nullopt;
  }
};

struct Walk {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::hash_walk,
      .name = "hash_walk",
      .summary =
          "answers the next items in the order of the map's hashes, and whether there may "
          "be more; long values are left out",
      .right = wire::Right::read,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::relayed};
  using Reply = Walked;

  std::uint32_t map = 0;
  std::string_view after;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the hash map's id");
    message.key(self.after, "the key behind which to begin, or none", 0, kKeyBytesMax);
  }
};

using All = wire::CallList<Create, Open, Stats, Get, Put, Insert, Update, Erase, CompareAndSet, Add,
                           Walk, OpenReads>;

}  // namespace espalier::hash_calls

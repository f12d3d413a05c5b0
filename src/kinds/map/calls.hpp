// SPDX-License-Identifier: Apache-2.0
// The calls of ordered maps but those on their items: making and opening one, its numbers,
// snapshots, holds of its releases, and what lets it be read from elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kinds/map/format/map_place.hpp"
#include "kinds/map/format/shard.hpp"
#include "wire/call_codec.hpp"
#include "wire/object.hpp"
#include "wire/ref.hpp"

namespace espalier::map_calls {

inline constexpr wire::Limits kOfAMap{.map = true};

[[nodiscard]] inline std::optional<wire::Fault> fault_of_group(const wire::MapShape& shape,
                                                               std::string_view group) {
  if (shape.group_bytes != group.size()) {
    return wire::Fault{shape.group_bytes, "the group's name is not as long as the shape says"};
  }
  if (!wire::is_group_of(group, shape.versions != 0)) {
    return wire::Fault{shape.group_bytes, wire::kVersionsOfGroup};
  }
  return std::nullopt;
}

[[nodiscard]] inline std::optional<wire::Fault> fault_of_shape(const wire::MapShape& shape,
                                                               std::string_view group) {
  const bool good = shape.versions <= 1 && shape.key_bytes_max == 0 && shape.reserved == 0;
  return good ? fault_of_group(shape, group) : std::optional(wire::Fault{shape.versions});
}

// --- replies -------------------------------------------------------------------------------------

/// A map by the number that its node gave it.
struct Opened {
  std::uint32_t id = 0;
  wire::MapShape shape{};
  std::string_view behind;       ///< of a shard its shard map, else the group's name
  std::uint64_t durability = 0;  ///< that it was made with (wire/object.hpp)

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.id);
    message.read_version(self.durability);
    message.fixed(self.shape);
    message.rest(self.behind);
  }
  /// A shard is in no group.
  [[nodiscard]] std::string_view group() const {
    return shape.group_bytes != 0 ? behind : std::string_view();
  }
  [[nodiscard]] std::string_view shard_map() const {
    return shape.group_bytes != 0 ? std::string_view() : behind;
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const { return fault_of_group(shape, group()); }
};

struct Numbers {
  wire::MapNumbers numbers{};

  static constexpr void fields(auto& self, auto& message) { message.fixed(self.numbers); }
};

/// A snapshot by the number that the session knows it by.
struct SnapshotOpened {
  std::uint64_t number = 0;
  std::uint64_t version = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.number);
    message.read_version(self.version);
  }
};

struct ReleaseHeld {
  std::uint64_t hold = 0;
  std::uint64_t version = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.hold);
    message.read_version(self.version);
  }
};

struct ReleaseConfirmed {
  bool stood = false;
  std::uint64_t version = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.flag(self.stood, wire::kFound);
    message.read_version(self.version);
  }
};

// --- requests ------------------------------------------------------------------------------------

struct Create {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::map_create,
      .name = "map_create",
      .summary = "makes an empty map; answers its number and shape",
      .right = wire::Right::admin,
      .object = wire::Names::by_name,
      .at_device = wire::AtDevice::relayed,
      .changes = true,
      .opens = true};
  using Reply = Opened;

  std::string_view name;
  wire::MapShape shape{};
  std::uint32_t durability = 0;
  std::string_view group{};

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the map's name");
    message.argument(self.durability, wire::kDurabilityWords);
    message.fixed(self.shape, "MapShape");
    message.rest(self.group, "the group's name", wire::kObjectNameBytesMax);
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    const auto wrong = wire::fault_of_durability(durability);
    return wrong ? wrong : fault_of_shape(shape, group);
  }
};

struct CreateShard {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::shard_create,
      .name = "shard_create",
      .summary =
          "makes an empty shard of a map that lies on several nodes; answers its number and "
          "shape",
      .right = wire::Right::admin,
      .object = wire::Names::by_name,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
  using Reply = Opened;

  std::string_view name;
  wire::MapShape shape{};
  std::string_view shard_map;
  std::uint32_t durability = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the map's name");
    message.argument(self.durability, wire::kDurabilityWords);
    message.fixed(self.shape, "MapShape");
    message.rest(self.shard_map, "the shard map", wire::kShardMapBytesMax,
                 sizeof(wire::ShardMapHeader));
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    const auto wrong = wire::fault_of_durability(durability);
    if (shape.group_bytes != 0) {
      return wire::Fault{shape.group_bytes, "a map over several nodes is in no group"};
    }
    return wrong ? wrong : fault_of_shape(shape, {});
  }
};

struct Open {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::map_open,
      .name = "map_open",
      .summary = "answers a map's number and shape, and of a shard its shard map",
      .right = wire::Right::read,
      .object = wire::Names::by_name,
      .at_device = wire::AtDevice::relayed,
      .opens = true};
  using Reply = Opened;

  std::string_view name;
  std::uint32_t knows_shards = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the map's name");
    message.argument(self.knows_shards, "1 of a client that knows shards");
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    return knows_shards > 1 ? std::optional(wire::Fault{knows_shards}) : std::nullopt;
  }
};

struct Stats {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::map_stats,
                                       .name = "map_stats",
                                       .summary = "answers a map's numbers",
                                       .right = wire::Right::read,
                                       .limits = kOfAMap,
                                       .at_device = wire::AtDevice::relayed};
  using Reply = Numbers;

  std::uint32_t map = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the map's id");
  }
};

struct OpenSnapshot {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::snapshot_open,
      .name = "snapshot_open",
      .summary = "holds the newest version; answers the snapshot's number and its version",
      .right = wire::Right::read,
      .limits = kOfAMap,
      .at_device = wire::AtDevice::by_kind};
  using Reply = SnapshotOpened;

  std::uint32_t map = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the map's id");
  }
};

struct CloseSnapshot {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::snapshot_close,
                                       .name = "snapshot_close",
                                       .summary = "lets a snapshot go",
                                       .right = wire::Right::read,
                                       .at_device = wire::AtDevice::here};
  using Reply = wire::Nothing;

  std::uint64_t number = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.fixed(self.number, "the snapshot's number");
  }
};

struct HoldRelease {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::release_hold,
      .name = "release_hold",
      .summary =
          "keeps the map's read version where it is, for 1 ms at most and once in 50 ms; "
          "answers the hold's number and the version",
      .right = wire::Right::read,
      .limits = kOfAMap,
      .at_device = wire::AtDevice::relayed};
  using Reply = ReleaseHeld;

  std::uint32_t map = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the map's id");
  }
};

struct ConfirmRelease {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::release_confirm,
      .name = "release_confirm",
      .summary = "ends a hold; answers whether it stood until now, and the read version until then",
      .right = wire::Right::read,
      .limits = kOfAMap,
      .at_device = wire::AtDevice::relayed};
  using Reply = ReleaseConfirmed;

  std::uint32_t map = 0;
  std::uint64_t hold = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the map's id");
    message.fixed(self.hold, "the hold's number");
  }
};

// --- reading it from elsewhere -------------------------------------------------------------------

/// A row of fields (wire/one_sided.hpp), of which those of maps are drawn in
/// kinds/map/format/map_place.hpp and mapping_feed.hpp.
struct Described {
  std::string_view fields_there;

  static constexpr void fields(auto& self, auto& message) { message.rest(self.fields_there); }
};

struct LeavesCounted {
  std::uint64_t keyed_key = 0;  ///< by which clients that open the map now READ it; 0: by none
  std::string_view rows;        ///< each a wire::LeafCount

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.keyed_key);
    message.rest(self.rows);
  }
};

struct OpenReads {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::one_sided_open,
      .name = "one_sided_open",
      .summary =
          "offers the node's memory to be read by this session alone, and grants it a "
          "lease; answers fields (wire/one_sided.hpp)",
      .right = wire::Right::read,
      .limits = kOfAMap,
      .object = wire::Names::all};
  using Reply = Described;

  std::uint32_t map = 0;
  std::uint32_t ways = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the map to be walked");
    message.argument(self.ways, "1 for READs by key");
  }
};

/// For who fills the tables of switches.
struct OpenIndex {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::index_open,
      .name = "index_open",
      .summary =
          "as one_sided_open for READs by key, for who fills the tables of switches; a "
          "field more names the key that they write",
      .right = wire::Right::admin,
      .limits = kOfAMap,
      .object = wire::Names::all};
  using Reply = Described;

  std::uint32_t map = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the map whose READs by key are to be redirected");
  }
};

struct NextGeneration {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::index_generation,
      .name = "index_generation",
      .summary =
          "answers the key that a new generation of tables writes; the one before stays "
          "good until the next; or makes void all but the newest",
      .right = wire::Right::admin,
      .limits = kOfAMap,
      .object = wire::Names::all,
      .routine = true};
  using Reply = Described;

  std::uint32_t map = 0;
  std::uint32_t what = 0;  ///< 0, or wire::kEndsGenerations

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "a map that the session has opened by index_open");
    message.argument(self.what,
                     "1 where no switch has tables of earlier generations any more, else 0");
  }
};

struct CountLeaves {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::index_counts,
      .name = "index_counts",
      .summary =
          "answers which leaves are read most, and how often (kinds/map/format/map_place.hpp); as "
          "version, the key by which clients that open the map now READ it",
      .right = wire::Right::read,
      .limits = kOfAMap};
  using Reply = LeavesCounted;

  std::uint32_t map = 0;
  std::uint32_t most = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the map");
    message.argument(self.most, "how many leaves at most, 0 for all that are known");
  }
};

struct OpenFeed {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::feed_open,
      .name = "feed_open",
      .summary =
          "tells the map's nodes that move in a ring of the memory, until the session's "
          "leases end; answers where that is (kinds/map/format/mapping_feed.hpp)",
      .right = wire::Right::read,
      .limits = kOfAMap};
  using Reply = Described;

  std::uint32_t map = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "a map of which the session holds a lease");
  }
};

using All =
    wire::CallList<Create, CreateShard, Open, Stats, OpenSnapshot, CloseSnapshot, HoldRelease,
                   ConfirmRelease, OpenReads, OpenIndex, NextGeneration, CountLeaves, OpenFeed>;

}  // namespace espalier::map_calls

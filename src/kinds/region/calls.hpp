// SPDX-License-Identifier: Apache-2.0
// The calls of regions: requests and replies. Those that access a region require the right of a
// peer, and devices do not relay them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kinds/region/format.hpp"
#include "wire/call_codec.hpp"

namespace espalier::region_calls {

// --- replies -------------------------------------------------------------------------------------

/// A region by its number at the node.
struct Opened {
  std::uint32_t id = 0;
  std::uint64_t bytes = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.id);
    message.fixed(self.bytes);
  }
  [[nodiscard]] static Opened of(const auto& made) { return {made.id(), made.bytes()}; }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    return bytes == 0 ? std::optional(wire::Fault{}) : std::nullopt;
  }
};

struct Bytes {
  wire::OwnBytes bytes;

  static constexpr void fields(auto& self, auto& message) {
    message.rest(self.bytes, "the bytes", region::kRequestBytesMax);
  }
};

/// The previous value of a word.
struct Word {
  std::uint64_t before = 0;

  static constexpr void fields(auto& self, auto& message) { message.version(self.before); }
};

struct Granted {
  region::RegionGrant grant{};

  static constexpr void fields(auto& self, auto& message) { message.fixed(self.grant); }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    const bool good = grant.bytes != 0 && (grant.flags & ~region::kGrantsAtomics) == 0 &&
                      grant.bytes <= ~std::uint64_t{0} - grant.base;
    return good ? std::nullopt : std::optional(wire::Fault{grant.flags});
  }
};

// --- requests ------------------------------------------------------------------------------------

struct Create {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::region_create,
                                       .name = "region_create",
                                       .summary =
                                           "makes a region of zeros; answers its number and "
                                           "how many bytes it has",
                                       .right = wire::Right::admin,
                                       .object = wire::Names::by_name,
                                       .at_device = wire::AtDevice::relayed,
                                       .changes = true,
                                       .opens = true};
  using Reply = Opened;

  std::string_view name;
  std::uint64_t bytes = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the region's name");
    message.fixed(self.bytes, "how many bytes it has");
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    if (bytes != 0) return std::nullopt;
    return wire::Fault{0, "a region has a byte at least"};
  }
};

struct Open {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::region_open,
      .name = "region_open",
      .summary = "answers a region's number and how many bytes it has",
      .right = wire::Right::peer,
      .object = wire::Names::by_name,
      .opens = true};
  using Reply = Opened;

  std::string_view name;

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the region's name");
  }
};

struct Read {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::region_read,
                                       .name = "region_read",
                                       .summary = "answers so many bytes of a region",
                                       .right = wire::Right::peer,
                                       .object = wire::Names::by_id};
  using Reply = Bytes;

  std::uint32_t id = 0;
  region::RegionRange range{};

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.id, "the region's id");
    message.fixed(self.range, "RegionRange");
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    if (range.reserved != 0) return wire::Fault{range.reserved};
    if (range.bytes <= region::kRequestBytesMax) return std::nullopt;
    return wire::Fault{range.bytes, "one request reads 65536 bytes at most"};
  }
};

struct Write {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::region_write,
                                       .name = "region_write",
                                       .summary = "writes bytes to a region",
                                       .right = wire::Right::peer,
                                       .object = wire::Names::by_id,
                                       .changes = true};
  using Reply = wire::Nothing;

  std::uint32_t id = 0;
  std::uint64_t offset = 0;
  std::string_view bytes;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.id, "the region's id");
    message.fixed(self.offset, "the offset");
    message.rest(self.bytes, "the bytes", region::kRequestBytesMax);
  }
};

struct FetchAdd {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::region_fetch_add,
      .name = "region_fetch_add",
      .summary = "adds to a word of 8 bytes, atomically; answers what it was",
      .right = wire::Right::peer,
      .object = wire::Names::by_id,
      .changes = true};
  using Reply = Word;

  std::uint32_t id = 0;
  std::uint64_t offset = 0;
  std::uint64_t amount = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.id, "the region's id");
    message.fixed(self.offset, "the offset");
    message.fixed(self.amount, "what is added");
  }
};

struct CompareSwap {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::region_compare_swap,
      .name = "region_compare_swap",
      .summary =
          "sets a word of 8 bytes if it is what is expected, atomically; answers what it was",
      .right = wire::Right::peer,
      .object = wire::Names::by_id,
      .changes = true};
  using Reply = Word;

  std::uint32_t id = 0;
  region::RegionSwap how{};

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.id, "the region's id");
    message.fixed(self.how, "RegionSwap");
  }
};

/// Requests a key of the session's own, by which it READs, WRITEs and uses atomics itself.
struct OpenKey {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::one_sided_region,
      .name = "one_sided_region",
      .summary =
          "lets this session READ, WRITE and change the region's bytes by itself; answers a "
          "RegionGrant, the same each time until another key is asked for",
      .right = wire::Right::peer,
      .object = wire::Names::by_id};
  using Reply = Granted;

  /// A new key; revokes the previous one, so that requests sent under it can take no effect any
  /// more.
  static constexpr std::uint32_t kAnother = 1;

  std::uint32_t id = 0;
  std::uint32_t which = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.id, "the region's id");
    message.argument(self.which, "1 for another key than before, which is revoked");
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    return which > kAnother ? std::optional(wire::Fault{which}) : std::nullopt;
  }
};

using All = wire::CallList<Create, Open, Read, Write, FetchAdd, CompareSwap, OpenKey>;

}  // namespace espalier::region_calls

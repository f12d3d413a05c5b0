// SPDX-License-Identifier: Apache-2.0
// Calls on the items of ordered maps: point reads and writes, range reads, batches. Reads are as of
// a snapshot if one is given, else of the newest released version.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "espalier/types.hpp"
#include "wire/call_codec.hpp"

namespace espalier::map_calls {

// --- replies -------------------------------------------------------------------------------------

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
};

struct ItemWritten {
  bool found = false;    ///< the key existed
  bool applied = false;  ///< the write was done, under `version`
  std::uint64_t version = 0;
  std::uint64_t read_version = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.flag(self.found, wire::kFound);
    message.flag(self.applied, wire::kApplied);
    message.version(self.version);
    message.read_version(self.read_version);
  }
};

/// As ItemWritten, with the new value of a sum.
struct Summed {
  bool found = false;
  bool applied = false;
  std::uint64_t version = 0;
  std::uint64_t sum = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.flag(self.found, wire::kFound);
    message.flag(self.applied, wire::kApplied);
    message.version(self.version);
    message.fixed(self.sum);
  }
};

/// The end of a scan; earlier items were streamed.
struct RangeRead {
  std::uint64_t count = 0;  ///< of all items, streamed ones included
  std::uint64_t read_version = 0;
  std::string_view items;  ///< the last items (wire/items.hpp)

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.count);
    message.read_version(self.read_version);
    message.rest(self.items);
  }
};

struct FloorFound {
  bool found = false;
  std::uint64_t version = 0;
  std::uint64_t read_version = 0;
  std::string_view item;  ///< encoded as in ranges

  static constexpr void fields(auto& self, auto& message) {
    message.flag(self.found, wire::kFound);
    message.version(self.version);
    message.read_version(self.read_version);
    message.rest(self.item);
  }
};

struct Counted {
  std::uint64_t count = 0;
  std::uint64_t read_version = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.count);
    message.read_version(self.read_version);
  }
};

/// Keys that split a range, each behind its length in 2 bytes.
struct BordersFound {
  std::string_view keys;

  static constexpr void fields(auto& self, auto& message) { message.rest(self.keys); }
};

struct Estimated {
  std::uint64_t count = 0;

  static constexpr void fields(auto& self, auto& message) { message.version(self.count); }
};

// --- one item ------------------------------------------------------------------------------------

inline constexpr wire::Limits kOnOneKey{.map = true, .keys = wire::Keys::one};

struct Get {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::get,
      .name = "get",
      .summary = "answers whether the key is there, its value, and its version",
      .right = wire::Right::read,
      .limits = kOnOneKey,
      .at_device = wire::AtDevice::walked};
  using Reply = ItemFound;

  std::uint32_t map = 0;
  std::string_view key;
  std::optional<std::uint64_t> snapshot;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the map's id");
    message.item_key(self.key, "the item's key");
    message.snapshot(self.snapshot);
  }
};

struct ValueToWrite {
  using Reply = ItemWritten;

  std::uint32_t map = 0;
  std::string_view key;
  std::string_view value;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the map's id");
    message.item_key(self.key, "the item's key");
    message.rest(self.value, "the value");
  }
};

struct Put : ValueToWrite {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::put,
                                       .name = "put",
                                       .summary = "inserts or replaces",
                                       .right = wire::Right::write,
                                       .limits = kOnOneKey,
                                       .at_device = wire::AtDevice::relayed,
                                       .changes = true};
};

struct Insert : ValueToWrite {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::insert,
      .name = "insert",
      .summary = "writes if the key is absent; answers whether it did",
      .right = wire::Right::write,
      .limits = kOnOneKey,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
};

struct Update : ValueToWrite {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::update,
      .name = "update",
      .summary = "writes if the key is present; answers whether it did",
      .right = wire::Right::write,
      .limits = kOnOneKey,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
};

struct Erase {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::erase,
      .name = "erase",
      .summary = "removes the key if it is there; answers whether it was",
      .right = wire::Right::write,
      .limits = kOnOneKey,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
  using Reply = ItemWritten;

  std::uint32_t map = 0;
  std::string_view key;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the map's id");
    message.item_key(self.key, "the item's key");
  }
};

struct CompareAndSet {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::compare_and_set,
      .name = "compare_and_set",
      .summary = "writes or erases if the item is as expected; else condition_failed",
      .right = wire::Right::write,
      .limits = kOnOneKey,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
  using Reply = ItemWritten;

  std::uint32_t map = 0;
  std::string_view key;
  wire::Comparison comparison{};
  std::string_view expected;
  std::string_view value;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the map's id");
    message.item_key(self.key, "the item's key");
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
      .id = wire::OffloadId::add,
      .name = "add",
      .summary = "adds to a value of 8 bytes, an absent one being 0; answers the sum",
      .right = wire::Right::write,
      .limits = kOnOneKey,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
  using Reply = Summed;

  std::uint32_t map = 0;
  std::string_view key;
  std::uint64_t amount = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the map's id");
    message.item_key(self.key, "the item's key");
    message.fixed(self.amount, "the amount, little-endian");
  }
};

struct Floor {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::floor,
      .name = "floor",
      .summary = "answers the item with the largest key not above this one",
      .right = wire::Right::read,
      .limits = kOnOneKey,
      .at_device = wire::AtDevice::walked};
  using Reply = FloorFound;

  std::uint32_t map = 0;
  std::string_view key;
  std::optional<std::uint64_t> snapshot;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the map's id");
    message.item_key(self.key, "a key");
    message.snapshot(self.snapshot);
  }
};

// --- ranges --------------------------------------------------------------------------------------

inline constexpr wire::Limits kOnARange{.map = true, .keys = wire::Keys::range};
/// Limit of a bound that ends a message; the map's own limit is smaller.
inline constexpr std::uint32_t kBoundBytesMax = 65535;

struct RangeToRead {
  using Reply = RangeRead;

  std::uint32_t map = 0;
  std::string_view low;
  std::uint32_t limit = 0;
  std::optional<std::uint64_t> snapshot;
  std::string_view high;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the map's id");
    message.item_key(self.low, "low");
    message.argument(self.limit, "how many items at most, 0 for all");
    message.snapshot(self.snapshot);
    message.rest(self.high, "high", kBoundBytesMax);
  }
};

struct Scan : RangeToRead {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::scan,
      .name = "scan",
      .summary = "answers the items of [low, high), ascending; empty bounds are none",
      .right = wire::Right::read,
      .limits = kOnARange,
      .at_device = wire::AtDevice::walked};
};

struct ScanReverse : RangeToRead {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::scan_reverse,
                                       .name = "scan_reverse",
                                       .summary = "answers the same items, descending",
                                       .right = wire::Right::read,
                                       .limits = kOnARange,
                                       .at_device = wire::AtDevice::walked};
};

struct ScanFloor : RangeToRead {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::scan_floor,
      .name = "scan_floor",
      .summary = "answers the items from the floor of low up to and including high",
      .right = wire::Right::read,
      .limits = kOnARange,
      .at_device = wire::AtDevice::walked};
};

struct Count {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::count,
                                       .name = "count",
                                       .summary = "answers how many items [low, high) has",
                                       .right = wire::Right::read,
                                       .limits = kOnARange,
                                       .at_device = wire::AtDevice::walked};
  using Reply = Counted;

  std::uint32_t map = 0;
  std::string_view low;
  std::optional<std::uint64_t> snapshot;
  std::string_view high;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the map's id");
    message.item_key(self.low, "low");
    message.snapshot(self.snapshot);
    message.rest(self.high, "high", kBoundBytesMax);
  }
};

struct CountEstimate {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::count_estimate,
      .name = "count_estimate",
      .summary = "answers about how many items [low, high) has, at the cost of two descents",
      .right = wire::Right::read,
      .limits = kOnARange,
      .at_device = wire::AtDevice::relayed};
  using Reply = Estimated;

  std::uint32_t map = 0;
  std::string_view low;
  std::string_view high;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the map's id");
    message.item_key(self.low, "low");
    message.rest(self.high, "high", kBoundBytesMax);
  }
};

struct RangeBorders {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::range_borders,
      .name = "range_borders",
      .summary = "answers where [low, high) may be cut into parts of about as many nodes",
      .right = wire::Right::read,
      .limits = kOnARange,
      .at_device = wire::AtDevice::relayed};
  using Reply = BordersFound;

  std::uint32_t map = 0;
  std::string_view low;
  std::uint32_t parts = 0;
  std::string_view high;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the map's id");
    message.item_key(self.low, "low");
    message.argument(self.parts, "how many parts at most, 1 to 64");
    message.rest(self.high, "high", kBoundBytesMax);
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    constexpr std::uint32_t kPartsMax = 64;
    if (parts >= 1 && parts <= kPartsMax) return std::nullopt;
    return wire::Fault{parts};
  }
};

// --- several items -------------------------------------------------------------------------------

struct BatchToWrite {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::write_batch,
      .name = "write_batch",
      .summary =
          "writes all under one version if all conditions hold; else condition_failed, with "
          "the number of the first that does not",
      .right = wire::Right::write,
      .limits = {.map = true},
      .at_device = wire::AtDevice::relayed,
      .changes = true};
  using Reply = ItemWritten;

  std::uint32_t map = 0;
  std::uint32_t count = 0;
  std::string_view entries;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the map's id");
    message.argument(self.count, "how many entries");
    message.rest(self.entries, "each a BatchEntry, its key, its value");
  }
};

using AllOnItems =
    wire::CallList<Get, Put, Insert, Update, Erase, CompareAndSet, Add, Floor, Scan, ScanReverse,
                   ScanFloor, Count, CountEstimate, RangeBorders, BatchToWrite>;

}  // namespace espalier::map_calls

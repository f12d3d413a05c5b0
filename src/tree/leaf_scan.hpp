// SPDX-License-Identifier: Apache-2.0
// The items of one leaf in key order, as of a read version: the sorted block and the log merged.
//
// Merging compares no keys: each log entry points to the sorted item before which it belongs, and
// the order hints sort the log itself [Honeycomb §4.3]. Keys are compared only at the ends of the
// range.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/types.hpp"
#include "tree/leaf_builder.hpp"
#include "tree/leaf_search.hpp"

namespace espalier::tree {

/// An item on its way out; an out-of-line value is still a ValueRef.
struct ScannedItem {
  Item item;
  bool out_of_line = false;
};

class LeafScan {
 public:
  /// Most items that take_few takes.
  static constexpr std::uint32_t kFew = 16;

  /// The short way of a short scan: takes the first `few` items from `low` on, if the log has none
  /// there and none is out of line. Returns false if there is no such way; the items are then
  /// worth nothing.
  /// Requires: `probe` is of `low`; few <= kFew; what it points to and the log are at hand.
  static bool take_few(const NodeView& leaf, const SearchKey& low, const LeafProbe& probe,
                       std::uint32_t few, Item* items);

  /// Prepares the items in [low, high); a null bound does not bound.
  /// Requires: the whole leaf, or the part between the bounds and the log, is at hand.
  void begin(const NodeView& leaf, std::uint64_t read_version, const SearchKit& kit,
             const SearchKey* low, const SearchKey* high);

  /// Takes up to `room` items from the low end. Returns how many; bit i of `out_of_line` is set if
  /// the i-th value is a ValueRef. Requires: room <= 64.
  std::uint32_t take(Item* items, std::uint32_t room, std::uint64_t& out_of_line);

  /// Takes up to `room` items from the high end, descending.
  std::uint32_t take_back(Item* items, std::uint32_t room, std::uint64_t& out_of_line);

 private:
  std::uint32_t take_alike(Item* items, std::uint32_t room);
  void sort_visible_log(std::uint64_t read_version);
  void bound_log(const SearchKey* low, Position low_at, const SearchKey* high, Position high_at);
  void look_at_next_entry();
  void gather_last_chunk();

  const std::byte* leaf_ = nullptr;
  const Geometry* geometry_ = nullptr;
  std::uint64_t created_ = 0;
  std::uint32_t offset_ = 0;  // sorted items left: [offset_, end_)
  std::uint32_t end_ = 0;
  std::uint32_t log_first_ = 0;  // log entries left: order_[log_first_, log_last_)
  std::uint32_t log_last_ = 0;
  std::uint32_t stop_ = 0;  // sorted items below this offset come before the next log entry
  LogItem next_;
  std::uint8_t order_[wire::kLogSlotsMax];
  std::vector<ScannedItem> gathered_;  // descending scans: items of the last chunk, ascending
};

}  // namespace espalier::tree

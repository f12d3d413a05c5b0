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
  /// Prepares the items in [low, high); a null bound does not bound. An ascending scan that will
  /// take at most `few` items may say so: then much of the work is often not needed.
  /// Requires: the whole leaf, or the part between the bounds and the log, is at hand.
  void begin(const NodeView& leaf, std::uint64_t read_version, const SearchKit& kit,
             const SearchKey* low, const SearchKey* high, std::uint64_t few = ~std::uint64_t{0});

  /// Takes up to `room` items from the low end. Returns how many; bit i of `out_of_line` is set if
  /// the i-th value is a ValueRef. Requires: room <= 64.
  std::uint32_t take(Item* items, std::uint32_t room, std::uint64_t& out_of_line);

  /// Takes up to `room` items from the high end, descending.
  std::uint32_t take_back(Item* items, std::uint32_t room, std::uint64_t& out_of_line);

 private:
  static constexpr std::uint32_t kFew = 16;

  [[nodiscard]] bool log_is_elsewhere(const NodeView& leaf, std::uint64_t read_version,
                                      std::uint32_t items) const;
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

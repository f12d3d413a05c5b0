// SPDX-License-Identifier: Apache-2.0
// The items of one leaf in key order, as of a read version: the sorted block and the log merged.
//
// Merging compares hardly any keys: each log entry has a place in the sorted block, before the item
// there or instead of it [Honeycomb §4.3]. Keys are compared at the ends of the range, and where
// entries have the same place.
#pragma once

#include <cstdint>
#include <vector>

#include "base/try_reserve.hpp"
#include "espalier/types.hpp"
#include "kinds/map/node/leaf_builder.hpp"
#include "kinds/map/node/leaf_search.hpp"
#include "kinds/map/node/leaf_window.hpp"
#include "kinds/map/node/log_in_order.hpp"

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
  /// Requires: `probe` is of `low`; few <= kFew; what it points to is at hand, and so are the
  /// places of log entries.
  static bool take_few(const NodeView& leaf, const SearchKey& low, const LeafProbe& probe,
                       std::uint32_t few, Item* items);

  /// Prepares the items in [low, high); a null bound does not bound.
  /// Requires: the whole leaf, or the part between the bounds and the log, is at hand.
  void begin(const NodeView& leaf, std::uint64_t read_version, const SearchKit& kit,
             const SearchKey* low, const SearchKey* high);

  /// Prepares the items of a window that are in [low, high).
  /// Requires: head, log and window are at hand; a bound of whose chunks the window has some has
  /// all of them there (`widened`).
  void begin_window(const NodeView& leaf, std::uint64_t read_version, const SearchKit& kit,
                    LeafWindow window, const SearchKey* low, const SearchKey* high);

  /// Prepares the items in [floor(key), high). Returns false if this leaf may not have the floor;
  /// then nothing is prepared.
  bool begin_at_floor(const NodeView& leaf, std::uint64_t read_version, const SearchKit& kit,
                      const SearchKey& key, const SearchKey* high);

  /// Takes up to `room` items from the low end. Returns how many; bit i of `out_of_line` is set if
  /// the i-th value is a ValueRef. With each sorted item it asks for the line so far `ahead` of it.
  /// Requires: room <= 64.
  std::uint32_t take(Item* items, std::uint32_t room, std::uint64_t& out_of_line,
                     std::ptrdiff_t ahead = 0) {
    return take_from(rest_, items, room, out_of_line, ahead);
  }

  /// Makes room for what take_back gathers of a leaf that is well-formed. False: the process has no
  /// memory for it. Cost: once.
  [[nodiscard]] bool reserve_back() noexcept {
    gathered_.clear();
    return base::try_reserve(gathered_, kGatheredMax);
  }
  /// Takes up to `room` items from the high end, descending. Requires: reserve_back.
  std::uint32_t take_back(Item* items, std::uint32_t room, std::uint64_t& out_of_line);

  /// Where the next sorted item begins, of those that take() takes.
  [[nodiscard]] std::uint32_t offset() const { return rest_.offset; }

 private:
  // A chunk is cut into 128 units at most, and an item takes one; another may reach into it.
  static constexpr std::size_t kGatheredMax = 129 + wire::kLogSlotsMax;

  /// What is left to take: sorted items [offset, end), entries [log_first, log_last) of log_.
  struct Rest {
    std::uint32_t offset = 0;
    std::uint32_t end = 0;
    std::uint32_t log_first = 0;
    std::uint32_t log_last = 0;
  };

  std::uint32_t take_from(Rest& rest, Item* items, std::uint32_t room, std::uint64_t& out_of_line,
                          std::ptrdiff_t ahead);
  std::uint32_t take_alike(std::uint32_t& offset, std::uint32_t stop, Item* items,
                           std::uint32_t room, std::ptrdiff_t ahead) const;
  void look_at(const NodeView& leaf);
  [[nodiscard]] std::uint32_t last_chunk_below(std::uint32_t end) const;
  void bound_log(const SearchKey* low, std::uint32_t low_at, const SearchKey* high,
                 std::uint32_t high_at);
  void gather_last_chunk();

  const std::byte* leaf_ = nullptr;
  const Geometry* geometry_ = nullptr;
  std::uint64_t created_ = 0;
  Rest rest_;
  LogInOrder log_;
  std::vector<ScannedItem> gathered_;  // descending scans: items of the last chunk, ascending
};

}  // namespace espalier::tree

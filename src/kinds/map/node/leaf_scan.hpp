// SPDX-License-Identifier: Apache-2.0
// Iterates over the items of one leaf in key order as of a read version: merges the sorted block
// and the log.
//
// Merging compares few keys: each log entry has a place in the sorted block, before the item there
// or instead of it [Honeycomb §4.3]. Keys are compared only at the bounds of the range and between
// entries with the same place.
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

/// An item to be delivered; an out-of-line value is still a ValueRef.
struct ScannedItem {
  Item item;
  bool out_of_line = false;
};

class LeafScan {
 public:
  /// Maximum `few` of take_few().
  static constexpr std::uint32_t kFew = 16;

  /// Fast path of a short scan: takes the first `few` items from `low` on, if the log has no entry
  /// there and no value is out of line. Returns false otherwise; `items` is then unspecified.
  /// Requires: `probe` is of `low`; few <= kFew; the probed bytes and the places of log entries are
  /// at hand.
  static bool take_few(const NodeView& leaf, const SearchKey& low, const LeafProbe& probe,
                       std::uint32_t few, Item* items);

  /// Prepares the items in [low, high); a null bound is no bound.
  /// Requires: the whole leaf, or the part between the bounds and the log, is at hand.
  void begin(const NodeView& leaf, std::uint64_t read_version, const SearchKit& kit,
             const SearchKey* low, const SearchKey* high);

  /// Prepares the items of a window that are in [low, high).
  /// Requires: head, log and window are at hand; if the window has some chunks of a bound, it has
  /// all of them (`widened`).
  void begin_window(const NodeView& leaf, std::uint64_t read_version, const SearchKit& kit,
                    LeafWindow window, const SearchKey* low, const SearchKey* high);

  /// Prepares the items in [floor(key), high). Returns false, with nothing prepared, if the floor
  /// may lie in another leaf.
  bool begin_at_floor(const NodeView& leaf, std::uint64_t read_version, const SearchKit& kit,
                      const SearchKey& key, const SearchKey* high);

  /// Takes up to `room` items from the low end. Returns their number; bit i of `out_of_line` is set
  /// if the i-th value is a ValueRef. Prefetches, for each sorted item, the line `ahead` bytes
  /// behind it.
  /// Requires: room <= 64.
  std::uint32_t take(Item* items, std::uint32_t room, std::uint64_t& out_of_line,
                     std::ptrdiff_t ahead = 0) {
    return take_from(rest_, items, room, out_of_line, ahead);
  }

  /// Reserves memory for what take_back() gathers of a well-formed leaf. False: out of memory.
  /// Cost: an allocation, at the first call.
  [[nodiscard]] bool reserve_back() noexcept {
    gathered_.clear();
    return base::try_reserve(gathered_, kGatheredMax);
  }
  /// Takes up to `room` items from the high end, descending. Requires: reserve_back().
  std::uint32_t take_back(Item* items, std::uint32_t room, std::uint64_t& out_of_line);

  /// Offset of the next sorted item of take().
  [[nodiscard]] std::uint32_t offset() const { return rest_.offset; }

 private:
  // A chunk has at most 128 units, each item takes at least one; one more item may reach into it.
  static constexpr std::size_t kGatheredMax = 129 + wire::kLogSlotsMax;

  /// What remains: sorted items [offset, end), entries [log_first, log_last) of log_.
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

// SPDX-License-Identifier: Apache-2.0
// Prefetches for forward scans, a fixed distance ahead of the items taken: in the current leaf,
// then in its neighbour or in the leaf where the next scan of the group begins. So long scans
// stream although leaves are scattered in memory.
//
// Prefetches are advice only: which leaf is next is decided when the scan reaches it.
//
// Thread: one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/prefetch.hpp"
#include "kinds/map/node/leaf_search.hpp"
#include "kinds/map/walk/map_view.hpp"

namespace espalier::tree {

class ScanAhead {
 public:
  /// Prefetch progress in a leaf's sorted block: offsets below `asked` were prefetched.
  struct Part {
    const std::byte* leaf = nullptr;
    std::uint32_t asked = 0;
  };

  /// Prefetches what a scan reads first of its next leaf, low fence included.
  static void want_next_leaf(const std::byte* leaf, const Geometry& g) {
    want_leaf_head(leaf, g, true);
    __builtin_prefetch(leaf + g.node_bytes - base::kLineBytes);
  }

  /// A scan continues at `offset` of `leaf`, for at most `items` more items. `inside`: it ends in
  /// this leaf. `after`: what will be read after the scan.
  void enter(const MapView& map, const NodeView& leaf, std::uint32_t offset, std::uint64_t items,
             bool inside, const Part& after) {
    const Geometry& g = map.geometry;
    const std::uint32_t end = leaf.sorted_end();
    const std::uint32_t item_bytes = leaf.item_bytes();
    const std::uint64_t scan_end =
        offset + std::min<std::uint64_t>(items, g.node_bytes) * item_bytes;
    const bool beyond = !inside && scan_end > end;
    part_ = {leaf.bytes(), next_.leaf == leaf.bytes() ? std::max(next_.asked, offset) : offset};
    end_ = beyond ? end : static_cast<std::uint32_t>(std::min<std::uint64_t>(end, scan_end));
    step_bytes_ = kStepItems * item_bytes;
    entry_ = beyond ? map.entry_offset(leaf.right()) : 0;
    if (entry_ != 0) __builtin_prefetch(map.at(entry_));
    next_ = beyond ? Part{} : after;
    next_begin_ = next_.asked;
    log_asked_ = false;
    steps_ = 0;
  }

  /// The scan has taken the items below `offset` and will now take up to kStepItems items. Returns
  /// the distance from each item at which to prefetch.
  [[nodiscard]] std::ptrdiff_t step(const MapView& map, std::uint32_t offset) {
    const std::uint32_t target = offset + kAhead;
    if (target + step_bytes_ <= end_) {
      ask(part_, target);
      part_.asked = target + step_bytes_;
      return kAhead;
    }
    ask(part_, end_);
    if (entry_ != 0) meet_neighbour(map, offset + step_bytes_ >= end_);
    if (next_.leaf == nullptr) return 0;
    const std::uint32_t next_target = next_begin_ + (target > end_ ? target - end_ : 0);
    ask(next_, next_target);
    next_.asked = next_target + step_bytes_;
    return (next_.leaf + next_target) - (part_.leaf + offset);
  }

  /// Whether the first bytes of the next leaf were prefetched some time ago.
  [[nodiscard]] bool next_is_near() const { return log_asked_; }

  static constexpr std::uint32_t kStepItems = 32;

 private:
  // Best of 1.4, 2.8, 5.6 and 8 KiB for scans of 1000 items.
  static constexpr std::uint32_t kAhead = 5632;
  static constexpr std::uint32_t kStepsToHead = 3;

  static void ask(Part& part, std::uint32_t end) {
    std::uint32_t asked = part.asked;
    if (asked >= end) return;
    for (; asked < end; asked += base::kLineBytes) __builtin_prefetch(part.leaf + asked);
    part.asked = asked;
  }

  // Two steps, since the head locates the log: the second some items later, or with the last ones.
  void meet_neighbour(const MapView& map, bool last) {
    const Geometry& g = map.geometry;
    const bool unknown = next_.leaf == nullptr;
    if (!unknown && (log_asked_ || (!last && ++steps_ != kStepsToHead))) return;
    const wire::Ref ref{
        base::load_shared<std::uint64_t>(map.at(entry_), std::memory_order_acquire)};
    if (!ref) return;
    if (unknown) {
      next_ = {map.at(ref.offset()), g.sorted_begin};
      next_begin_ = g.sorted_begin;
      want_next_leaf(next_.leaf, g);
    } else if (next_.leaf == map.at(ref.offset())) {  // unchanged
      log_asked_ = true;
      const NodeView next(next_.leaf, g);
      want_log(next, NodeHead::read(next_.leaf));
      __builtin_prefetch(map.at(map.entry_offset(next.right())));
    }
  }

  Part part_;              // where the scan is
  std::uint32_t end_ = 0;  // end of what it takes there
  Part next_;              // what it reads next
  std::uint32_t next_begin_ = 0;
  std::uint32_t step_bytes_ = 0;  // estimated bytes of kStepItems items
  std::uint64_t entry_ = 0;  // of the page table: names the neighbour; 0: the scan ends before it
  bool log_asked_ = false;   // the neighbour's log was prefetched
  std::uint32_t steps_ = 0;  // since the neighbour became known
};

}  // namespace espalier::tree

// SPDX-License-Identifier: Apache-2.0
// Scans in groups: their part of the stages of group.hpp.
#pragma once

#include "kinds/map/host/host_executor_impl.hpp"

namespace espalier::tree {

// --- prefetches ----------------------------------------------------------------------------------

// Prefetches the leaf at which a scan may soon continue.
template <Access A>
inline void HostExecutor<A>::want_neighbour(const GroupSlot& slot) const {
  const wire::Ref right = map_.ref_at(slot.entry);
  if (!right) return;
  ScanAhead::want_next_leaf(map_.at(right.offset()), map_.geometry);
}

// The offset up to which to prefetch before a scan takes items. If the scan will probably continue
// at the next leaf, also prefetches that leaf's page-table entry.
template <Access A>
template <class Kit>
inline std::uint32_t HostExecutor<A>::scan_end(GroupSlot& slot, const NodeView& leaf,
                                               const Kit& kit) {
  constexpr std::uint64_t kAhead = 1024;
  slot.entry = 0;
  if (bound_scan(*slot.request, leaf)) {
    LeafProbe last;
    probe_leaf(leaf, NodeHead::read(leaf.bytes()), group_high_, kit, last);
    slot.planned = std::max(last.end, slot.probe.end);
    return static_cast<std::uint32_t>(std::min(slot.planned, slot.probe.begin + kAhead));
  }
  const std::uint64_t wanted = slot.remaining * leaf.item_bytes();
  slot.planned = slot.probe.begin + wanted;
  if (slot.planned >= leaf.sorted_end() && slot.request->op != Op::floor) {
    slot.entry = map_.entry_offset(leaf.right());
    __builtin_prefetch(map_.at(slot.entry));
  }
  const std::uint32_t chunk = 1u << map_.geometry.chunk_shift;
  return std::min(leaf.sorted_end(),
                  slot.probe.begin + chunk + static_cast<std::uint32_t>(std::min(wanted, kAhead)));
}

// Whether a scan's high bound lies in this leaf; group_high_ is then the bound.
template <Access A>
inline bool HostExecutor<A>::bound_scan(const Request& request, const NodeView& leaf) {
  if (request.high.empty() || request.op == Op::floor) return false;
  request.op == Op::scan ? group_high_.assign(request.high)
                         : group_high_.assign_successor(request.high);
  return leaf.covers(group_high_);
}

// The begin of the group's next scan.
template <Access A>
inline ScanAhead::Part HostExecutor<A>::begin_of(std::span<const GroupSlot> slots) const {
  if (slots.empty() || !slots.front().arriving || slots.front().goal != Goal::forward) return {};
  return {map_.at(slots.front().ref.offset()), slots.front().asked};
}

// --- answers -------------------------------------------------------------------------------------

template <Access A>
inline bool HostExecutor<A>::join_scan(GroupSlot& slot, const Request& request) {
  constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 40;
  const std::string_view high = request.high;
  if (high.size() > map_.geometry.key_bytes_max) return false;
  if (request.op != Op::floor) {
    if (high.empty() ? request.limit == 0 : compare_keys(request.key, high) >= 0) return false;
    if (request.limit > kGroupScanItems) return false;
  }
  slot.goal = Goal::forward;
  slot.remaining = request.op == Op::floor ? 1 : request.limit != 0 ? request.limit : kNoLimit;
  slot.items = 0;
  slot.first_leaf = true;
  return true;
}

// Delivers the items leaf by leaf. A leaf that is not prefetched yet arrives again, while others
// proceed.
template <Access A>
void HostExecutor<A>::answer_scan(GroupSlot& slot, const ScanAhead::Part& after) {
  const Request& request = *slot.request;
  const bool has_high = !request.high.empty() && request.op != Op::floor;
  for (;;) {
    const NodeView leaf(map_.at(slot.ref.offset()), map_.geometry);
    if (slot.first_leaf && !has_high && answer_few(slot, leaf)) return;
    const bool bounded = bound_scan(request, leaf);  // whether the scan ends in this leaf
    if (!begin_scan(slot, leaf, bounded)) return hand_to_lane(slot);
    if (request.op == Op::floor) return answer_floor(slot);
    ahead_.enter(map_, leaf, group_scan_.offset(), slot.remaining, bounded, after);
    const std::string_view end = leaf.high_fence();
    const bool last =
        bounded || end.empty() || (has_high && compare_keys(group_high_.view(), end) <= 0);
    if (take_items(slot) || last) return complete_scan(slot);
    slot.entry = map_.entry_offset(leaf.right());
    slot.key.assign(end);
    slot.first_leaf = false;
    if (!ahead_.next_is_near()) {
      __builtin_prefetch(map_.at(slot.entry));
      slot.ref = {};
      slot.arriving = true;
      return;
    }
    slot.ref = walk_to_leaf(slot, slot.entry != 0 ? map_.ref_at(slot.entry) : wire::Ref{});
  }
}

// Prepares the items of a leaf; false if the scan needs a lane after all: its floor is in another
// leaf, or it may be long and has no limit.
template <Access A>
inline bool HostExecutor<A>::begin_scan(GroupSlot& slot, const NodeView& leaf, bool bounded) {
  const SearchKey* high = bounded ? &group_high_ : nullptr;
  if (slot.first_leaf) {
    const Request& request = *slot.request;
    if (request.op != Op::floor && request.limit == 0 && !bounded) return false;
    if (request.op != Op::scan) {
      return group_scan_.begin_at_floor(leaf, slot.read_version, map_.kit, slot.key, high);
    }
  }
  // Without versions the next leaf may overlap the cursor: it may be of another moment.
  const bool from_key = slot.first_leaf || !map_.versions;
  group_scan_.begin(leaf, slot.read_version, map_.kit, from_key ? &slot.key : nullptr, high);
  return true;
}

template <Access A>
void HostExecutor<A>::answer_floor(GroupSlot& slot) {
  std::uint64_t out_of_line = 0;
  Item item;
  Completion answer;
  answer.items = group_scan_.take(&item, 1, out_of_line);
  values_at_hand(&item, out_of_line);
  answer.found = true;
  answer.key = item.key;
  answer.value = item.value;
  answer.version = item.version;
  answer.read_version = slot.read_version;
  complete(slot, answer);
}

// Resolves the out-of-line values among the items, as given by the bits.
template <Access A>
inline void HostExecutor<A>::values_at_hand(Item* items, std::uint64_t out_of_line) const {
  for (; out_of_line != 0; out_of_line &= out_of_line - 1) {
    Item& item = items[std::countr_zero(out_of_line)];
    item.value = stored_value(map_, item.value);
    want_value(item.value);
  }
}

template <Access A>
inline void HostExecutor<A>::complete_scan(GroupSlot& slot) {
  Completion answer;
  answer.items = slot.items;
  answer.read_version = slot.read_version;
  complete(slot, answer);
}

// Answers a scan that ends in this leaf, among items that the log does not touch.
template <Access A>
inline bool HostExecutor<A>::answer_few(GroupSlot& slot, const NodeView& leaf) {
  if (slot.request->op != Op::scan || slot.remaining > LeafScan::kFew) return false;
  Item* const items = group_items_;
  const auto few = static_cast<std::uint32_t>(slot.remaining);
  if (!LeafScan::take_few(leaf, slot.key, slot.probe, few, items)) return false;
  slot.handler->items(slot.request->tag, {items, few});
  slot.items = few;
  complete_scan(slot);
  return true;
}

// Delivers the rest of the leaf; true if the scan is over.
template <Access A>
inline bool HostExecutor<A>::take_items(GroupSlot& slot) {
  Item* const items = group_items_;
  for (;;) {
    const auto room = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(std::size(group_items_), slot.remaining));
    std::uint64_t out_of_line = 0;
    const std::ptrdiff_t ahead = ahead_.step(map_, group_scan_.offset());
    const std::uint32_t count = group_scan_.take(items, room, out_of_line, ahead);
    values_at_hand(items, out_of_line);
    slot.items += count;
    slot.remaining -= count;
    if (count != 0 && !slot.handler->items(slot.request->tag, {items, count})) return true;
    if (slot.remaining == 0) return true;
    if (count < room) return false;
  }
}

}  // namespace espalier::tree

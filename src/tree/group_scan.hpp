// SPDX-License-Identifier: Apache-2.0
// Scans in groups: what the stages of group.hpp do for them.
#pragma once

#include "tree/engine_impl.hpp"

namespace espalier::tree {

// --- asking for what they will read --------------------------------------------------------------

// The leaf that a scan may go on to soon.
template <Access A>
inline void Engine<A>::want_neighbour(const GroupSlot& slot) const {
  const wire::Ref right = named_at(slot.entry);
  if (!right) return;
  ScanAhead::want_next_leaf(map_.at(right.offset()), map_.geometry);
}

// Up to where to ask for a scan's items before it begins to take them.
template <Access A>
inline std::uint32_t Engine<A>::scan_end(const GroupSlot& slot, const NodeView& leaf) const {
  constexpr std::uint64_t kAhead = 1024;
  const std::uint64_t wanted = std::min(slot.remaining * leaf.item_bytes(), kAhead);
  const std::uint32_t chunk = 1u << map_.geometry.chunk_shift;
  return std::min(leaf.sorted_end(), slot.probe.begin + chunk + static_cast<std::uint32_t>(wanted));
}

// Whether a scan will want items of the next leaf, about.
template <Access A>
inline bool Engine<A>::goes_beyond(const GroupSlot& slot, const NodeView& leaf) const {
  return slot.probe.begin + slot.remaining * leaf.item_bytes() >= leaf.sorted_end();
}

// Where the next scan of the group begins.
template <Access A>
inline ScanAhead::Part Engine<A>::begin_of(std::span<const GroupSlot> slots) const {
  if (slots.empty() || !slots.front().arriving || slots.front().goal != Goal::forward) return {};
  return {map_.at(slots.front().ref.offset()), slots.front().asked};
}

// --- answers -------------------------------------------------------------------------------------

// The items of one leaf after the other. What is not near yet arrives again, while others go on.
template <Access A>
void Engine<A>::answer_scan(GroupSlot& slot, const ScanAhead::Part& after) {
  const std::string_view high = slot.request->high;
  if (slot.first_leaf) {
    slot.items = 0;
    const NodeView leaf(map_.at(slot.ref.offset()), map_.geometry);
    if (slot.remaining <= LeafScan::kFew && high.empty() && answer_few(slot, leaf)) return;
  }
  for (;;) {
    const NodeView leaf(map_.at(slot.ref.offset()), map_.geometry);
    bool bounded = false;  // the scan ends in this leaf
    if (!high.empty()) {
      group_high_.assign(high);
      bounded = leaf.covers(group_high_);
    }
    // Without versions the next leaf may begin below the cursor: it need not be of the same moment.
    const bool from_key = slot.first_leaf || !map_.options.versions;
    group_scan_.begin(leaf, slot.read_version, map_.kit, from_key ? &slot.key : nullptr,
                      bounded ? &group_high_ : nullptr);
    ahead_.enter(map_, leaf, group_scan_.offset(), slot.remaining, bounded, after);
    bool over = take_items(slot);
    const std::string_view end = leaf.high_fence();
    over = over || end.empty() || (!high.empty() && compare_keys(high, end) <= 0);
    if (over) {
      Completion answer;
      answer.items = slot.items;
      answer.read_version = slot.read_version;
      return complete(slot, answer);
    }
    slot.entry = map_.table.entry_offset(leaf.right());
    slot.key.assign(end);
    slot.first_leaf = false;
    if (!ahead_.next_is_near()) {
      __builtin_prefetch(map_.at(slot.entry));
      slot.ref = {};
      slot.arriving = true;
      return;
    }
    slot.ref = find_leaf(slot, named_at(slot.entry));
  }
}

// A scan that ends in this leaf, among items that the log does not touch.
template <Access A>
inline bool Engine<A>::answer_few(GroupSlot& slot, const NodeView& leaf) {
  Item items[LeafScan::kFew];
  const auto few = static_cast<std::uint32_t>(slot.remaining);
  if (!LeafScan::take_few(leaf, slot.key, slot.probe, few, items)) return false;
  slot.handler->items(slot.request->tag, {items, few});
  Completion answer;
  answer.items = few;
  answer.read_version = slot.read_version;
  complete(slot, answer);
  return true;
}

// Hands over what is left of the leaf; true if the scan is over.
template <Access A>
inline bool Engine<A>::take_items(GroupSlot& slot) {
  Item* const items = group_items_;
  for (;;) {
    const auto room = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(std::size(group_items_), slot.remaining));
    std::uint64_t out_of_line = 0;
    const std::ptrdiff_t ahead = ahead_.step(map_, group_scan_.offset());
    const std::uint32_t count = group_scan_.take(items, room, out_of_line, ahead);
    for (; out_of_line != 0; out_of_line &= out_of_line - 1) {
      Item& item = items[std::countr_zero(out_of_line)];
      item.value = stored_value(map_, item.value);
    }
    slot.items += count;
    slot.remaining -= count;
    if (count != 0 && !slot.handler->items(slot.request->tag, {items, count})) return true;
    if (slot.remaining == 0) return true;
    if (count < room) return false;
  }
}

}  // namespace espalier::tree

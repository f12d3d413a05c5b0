// SPDX-License-Identifier: Apache-2.0
// Gets in groups: the hand-staged form of the walk for point reads in place.
//
// A get that meets nothing unusual needs no coroutine: it goes down, waits for the leaf's head,
// waits for the chunk, and answers. Here a group of gets takes these stages together, each stage
// prefetching for the next, in a fraction of the instructions. Whatever is unusual (a node that was
// superseded, a tie of fences, a value out of line) is handed to a lane, which walks anew; both
// forms use the same functions for every decision, and the same tests (DESIGN idea 2; figures:
// docs/benchmarks.md).
#pragma once

#include "tree/engine_impl.hpp"

namespace espalier::tree {

template <Access A>
inline bool Engine<A>::next_is_get() const {
  return !points_.empty() && !current_.requests.empty() && singles_.empty() &&
         current_.requests.front().op == Op::get;
}

template <Access A>
void Engine<A>::run_points() {
  const std::uint32_t tick = pins_.begin();
  const std::uint64_t read_version = pins_.version();
  Handler& handler = *current_.handler;
  const std::uint32_t longest = map_.geometry.key_bytes_max;
  std::size_t count = 0;
  while (count < points_.size() && next_is_get()) {
    PointSlot& slot = points_[count++];
    slot.request = &current_.requests.front();
    current_.requests = current_.requests.subspan(1);
    const std::size_t bytes = slot.request->key.size();
    slot.plain = bytes != 0 && bytes <= longest;
    if (slot.plain) slot.key.assign(slot.request->key);
  }
  const std::span<PointSlot> slots(points_.data(), count);
  descend_together(slots, read_version);
  for (PointSlot& slot : slots) look_at_leaf(slot, read_version);
  for (PointSlot& slot : slots) answer_point(slot, read_version, handler);
  pins_.end(tick);
}

// To the leaves; their heads are then on their way. The last entries of the page table are far too.
template <Access A>
void Engine<A>::descend_together(std::span<PointSlot> slots, std::uint64_t read_version) {
  for (PointSlot& slot : slots) {
    if (!slot.plain) continue;
    slot.entry = descend_in_cache(slot.key, read_version);
    __builtin_prefetch(map_.at(slot.entry));
  }
  const Geometry& g = map_.geometry;
  for (PointSlot& slot : slots) {
    if (!slot.plain) continue;
    slot.ref.bits =
        base::load_shared<std::uint64_t>(map_.at(slot.entry), std::memory_order_acquire);
    slot.plain = static_cast<bool>(slot.ref);
    const std::byte* leaf = map_.at(slot.ref.offset());
    __builtin_prefetch(leaf);
    for (std::uint32_t line = g.slots_begin; line < g.sorted_begin; line += 64) {
      __builtin_prefetch(leaf + line);
    }
  }
}

template <Access A>
inline void Engine<A>::look_at_leaf(PointSlot& slot, std::uint64_t read_version) {
  if (!slot.plain) return;
  const std::byte* at = map_.at(slot.ref.offset());
  const NodeHead head = NodeHead::read(at);
  slot.plain = head.leaf() && answers_at_once(slot.key, read_version, at, head, slot.ref);
  if (!slot.plain) return;
  const NodeView leaf(at, map_.geometry);
  slot.probe = probe_leaf(leaf, head, slot.key, map_.kit);
  const std::byte* const end = at + slot.probe.end;
  for (const std::byte* line = at + (slot.probe.begin & ~63u); line < end; line += 64) {
    __builtin_prefetch(line);
  }
  if (slot.probe.log_matches != 0) {
    const auto newest = static_cast<std::uint32_t>(63 - std::countl_zero(slot.probe.log_matches));
    __builtin_prefetch(at + leaf.log_offset(newest));
  }
}

template <Access A>
inline void Engine<A>::answer_point(PointSlot& slot, std::uint64_t read_version, Handler& handler) {
  const Request& request = *slot.request;
  Completion answer;
  if (slot.plain) {
    const NodeView leaf(map_.at(slot.ref.offset()), map_.geometry);
    bool out_of_line = false;
    answer.found = find_point(slot.key, leaf, slot.probe, read_version, answer, out_of_line);
    slot.plain = !out_of_line;
  }
  if (!slot.plain) {  // stays queued, for a lane
    singles_.push_back({&request, &handler, nullptr, {}, {}});
    return;
  }
  --queued_;
  ++completed_;
  answer.tag = request.tag;
  answer.op = Op::get;
  answer.ok = true;
  answer.read_version = read_version;
  handler.done(answer);
}

}  // namespace espalier::tree

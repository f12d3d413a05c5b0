// SPDX-License-Identifier: Apache-2.0
// Writes in groups: their part of the stages of group.hpp. Each write is performed singly, with a
// version of its own, once all that it reads was prefetched.
#pragma once

#include "kinds/map/host/host_executor_impl.hpp"

namespace espalier::tree {

/// Log bytes that this write needs.
inline std::uint32_t log_bytes(const Request& request, const Geometry& g) {
  const bool out_of_line = request.value.size() > g.inline_value_bytes_max;
  return log_bytes(request.op, request.key.size(),
                   out_of_line ? sizeof(wire::ValueRef) : request.value.size());
}

/// Whether the log currently has no room for the slot's write.
inline bool finds_log_full(const GroupSlot& slot, const NodeView& leaf, wire::LockWord lock) {
  return !log_has_room(leaf, lock, 1, log_bytes(*slot.request, leaf.geometry()));
}

template <Access A>
inline bool HostExecutor<A>::goes_out_of_line(const Request& request) const {
  return request.op != Op::erase && request.value.size() > map_.geometry.inline_value_bytes_max;
}

// Stores a long value, once. False: out of memory. Requires: no lock is held.
template <Access A>
inline bool HostExecutor<A>::store_long_value(GroupSlot& slot) {
  if (slot.value.ref != 0 || !goes_out_of_line(*slot.request)) [[likely]]
    return true;
  const auto value = store_value(context_, map_, slot.request->value);
  if (value) slot.value = *value;
  return value.has_value();
}

// The write to be performed. Requires: a long value is stored.
template <Access A>
inline WriteIntent HostExecutor<A>::intent_of(const GroupSlot& slot) const {
  WriteIntent intent;
  intent.op = slot.request->op;
  intent.key = &slot.key;
  intent.value = slot.request->value;
  if (slot.value.ref != 0) [[unlikely]] {
    intent.out_of_line = true;
    intent.value = {reinterpret_cast<const char*>(&slot.value), sizeof slot.value};
  }
  return intent;
}

template <Access A>
void HostExecutor<A>::answer_write(GroupSlot& slot) {
  WriteOutcome outcome;
  if (store_long_value(slot)) {
    const WriteIntent intent = intent_of(slot);
    outcome = write_in(context_, map_, slot.ref, intent, slot.probed ? &slot.probe : nullptr);
    // Often an earlier write of the group has split this leaf. Retrying here keeps the group's
    // order, by which ascending keys are recognised.
    for (int attempt = 0; attempt < 4 && outcome.status == WriteStatus::moved; ++attempt) {
      find_anew(slot);
      outcome = write_in(context_, map_, slot.ref, intent);
    }
  }
  const bool decided = outcome.status == WriteStatus::done ||
                       outcome.status == WriteStatus::condition_failed ||
                       outcome.status == WriteStatus::refused;
  if (decided) return end_write(slot, outcome);
  if (slot.value.ref != 0) discard_value(context_, map_, slot.value);
  hand_to_lane(slot);
}

template <Access A>
inline void HostExecutor<A>::end_write(GroupSlot& slot, const WriteOutcome& outcome) {
  if (slot.value.ref != 0 && !outcome.applied) discard_value(context_, map_, slot.value);
  if (outcome.applied) note_leaf(slot);
  wrote_ = true;
  Completion answer;
  report(outcome, answer);
  answer.read_version = guard_.version();
  const std::uint64_t wait_for = waits_for(outcome);
  if (wait_for <= map_.clock.released() || place_.may_answer(wait_for, answer)) {
    return complete(slot, answer);
  }
  sign(answer, *slot.request);
  waiting_.push_back({answer, slot.handler, wait_for});
}

// --- ascending writes ----------------------------------------------------------------------------

template <Access A>
inline void HostExecutor<A>::note_leaf(const GroupSlot& slot) {
  const wire::Lid leaf = map_.view(slot.ref).lid();
  finger_.writes = leaf == finger_.leaf ? finger_.writes + 1 : 0;
  finger_.leaf = leaf;
}

// Whether the slot's write belongs to the finger's leaf; if so, the slot has arrived there.
template <Access A>
inline bool HostExecutor<A>::is_at_finger(GroupSlot& slot) const {
  if (slot.goal != Goal::write || finger_.writes < Finger::kWritesMin) return false;
  const wire::Ref ref = map_.ref(finger_.leaf);
  if (!ref) return false;
  const std::byte* const at = map_.at(ref.offset());
  const NodeHead head = NodeHead::read(at);
  if (!head.leaf() || !is_meant(map_, kNewest, at, head, ref)) return false;
  if (!NodeView(at, map_.geometry).covers(slot.key)) return false;
  slot.ref = ref;
  slot.entry = 0;
  slot.lid = finger_.leaf;
  slot.probed = false;
  return true;
}

// Performs a write for which its caller waits, without a descent. False: it needs the descent.
template <Access A>
bool HostExecutor<A>::write_at_finger(Group& group) noexcept {
  GroupSlot& slot = group.slots.front();
  if (!is_at_finger(slot)) return false;
  answer_write(slot);
  end(group);
  return true;
}

}  // namespace espalier::tree

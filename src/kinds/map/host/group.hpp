// SPDX-License-Identifier: Apache-2.0
// Group prefetching: requests in groups, the hand-staged form of the walk for local memory.
//
// A request in forward direction needs no coroutine if its bytes are in this process's memory. A
// group of requests executes the stages of a walk together, each stage prefetching for the next:
//
//   descend   from the root to the leaf's page-table entry, level by level
//   arrive    reads the entry, prefetches the leaf's head
//   look      checks that the leaf may answer, chooses the chunk, prefetches it and part of the log
//   answer    gets, writes, or takes items; a scan continues at the next leaf and arrives again
//
// If a leaf's fences tie with the key, as with keys that share a prefix, they are compared only
// when needed. A key found in the leaf needs no proof, since a leaf has no keys outside its fences.
// A write compares the fences under the lock. A scan compares them before it takes items, for which
// they were prefetched along. A get that finds no such key arrives again, and then compares them.
//
// This takes a fraction of the instructions of lanes, particularly as the stages are compiled for
// each instruction set with its kernels inlined (DESIGN idea 2; measurements: docs/benchmarks.md).
// Rare cases on the way (a node that is too new, a leaf of other keys) are handled by walk_to_leaf,
// one request at a time. Requests that go backward, wait long, or need memory go to a lane. All
// forms share the deciding functions and pass the same tests.
#pragma once

#include "base/prefetch.hpp"
#include "kinds/map/host/group_scan.hpp"
#include "kinds/map/host/group_writes.hpp"

namespace espalier::tree {

// --- group membership ----------------------------------------------------------------------------

template <Access A>
inline bool HostExecutor<A>::group_is_next() {
  return !lanes_.short_of_memory() && lanes_.may_take_over(2 * kGroup) && batches_.next() &&
         may_wait();
}

// Takes requests until the group is full, or the limit on requests waiting for lanes is reached.
// Until then, requests that wait for a lane do not delay those that need none.
template <Access A>
void HostExecutor<A>::fill(Group& group) {
  while (group.count < group.slots.size() && group_is_next()) {
    const Request& request = batches_.front();
    Handler& handler = batches_.handler();
    const wire::Ref hint = batches_.hint();
    batches_.pop();
    GroupSlot& slot = group.slots[group.count];
    if (join(slot, request, handler)) {
      ++group.count;
      if (hint && slot.goal != Goal::write && map_.holds_node(hint)) [[unlikely]] {
        slot.hint = hint;
        group.hinted = true;
        __builtin_prefetch(map_.at(hint.offset()));
      }
    } else {
      --queued_;
      lanes_.take_over({&request, &handler, nullptr, hint, {}});
    }
  }
  if (group.count != 0) begin(group);
}

template <Access A>
inline void HostExecutor<A>::begin(Group& group) {
  group.tick = guard_.begin();
  for (GroupSlot& slot : group.in_use()) {
    slot.read_version = slot.goal == Goal::write ? kNewest : guard_.version();
  }
}

// Assigns the request to the slot, if it is one for groups.
template <Access A>
inline bool HostExecutor<A>::join(GroupSlot& slot, const Request& request, Handler& handler) {
  const std::size_t key_bytes = request.key.size();
  if (key_bytes == 0 || key_bytes > map_.geometry.key_bytes_max) return false;
  switch (request.op) {
    case Op::get: slot.goal = Goal::point; break;
    case Op::put:
    case Op::insert:
    case Op::update:
    case Op::erase:
      if (request.op != Op::erase && request.value.size() > kGroupValueBytes) return false;
      slot.goal = Goal::write;
      slot.value = {};
      break;
    case Op::floor:
    case Op::scan:
    case Op::scan_floor:
      if (!join_scan(slot, request)) return false;
      break;
    default: return false;
  }
  slot.key.assign(request.key);
  slot.other_predecessor = {};
  slot.hint = {};
  slot.request = &request;
  slot.handler = &handler;
  return true;
}

template <Access A>
void HostExecutor<A>::run(const WalkRequest& request) {
  guard_.stale();
  Group& group = groups_[turn_];
  if (request.plain() && join(group.slots.front(), *request.request, *request.handler)) {
    ++queued_;
    group.count = 1;
    begin(group);
    if (!write_at_finger(group)) {
      step_group();
      step_group();
    }
  } else {
    lanes_.submit(request);
  }
  if (pending() != 0) {
    drain();
  } else {
    guard_.idle();
  }
}

// Fills in the answer's request fields and its status.
template <Access A>
inline void HostExecutor<A>::sign(Completion& answer, const Request& request) {
  answer.tag = request.tag;
  answer.op = request.op;
  answer.ok = answer.error.code == Code::invalid;
}

template <Access A>
inline void HostExecutor<A>::complete(GroupSlot& slot, Completion& answer) {
  sign(answer, *slot.request);
  --queued_;
  ++completed_;
  answering_ = slot.lid;
  slot.handler->done(answer);
  answering_ = 0;
}

// Passes the request to a lane, which walks from the start.
template <Access A>
void HostExecutor<A>::hand_to_lane(GroupSlot& slot) {
  --queued_;
  lanes_.take_over({slot.request, slot.handler, nullptr, {}, {}});
}

// Completes writes whose versions are released; false if there was none (rules 6 and 7).
template <Access A>
bool HostExecutor<A>::answer_released_writes() {
  const std::uint64_t released = map_.clock.released_now();
  const std::size_t before = waiting_.size();
  std::erase_if(waiting_, [&](WaitingAnswer& waiting) {
    if (waiting.wait_for > released) {
      if (!place_.may_answer(waiting.wait_for, waiting.answer)) return false;
      waiting.answer.ok = waiting.answer.error.code == Code::invalid;
    }
    --queued_;
    ++completed_;
    waiting.handler->done(waiting.answer);
    return true;
  });
  return waiting_.size() != before;
}

// --- stages --------------------------------------------------------------------------------------

// One group computes while the other's prefetches are in flight.
template <Access A>
template <class Kit>
inline void HostExecutor<A>::step() {
  Group& ahead = groups_[turn_];
  turn_ = 1 - turn_;
  Group& behind = groups_[turn_];
  if (ahead.count == 0 && (behind.count == 0 || lanes_.lanes() > 1)) fill(ahead);
  descend<Kit>(ahead.in_use(), ahead.hinted);
  for (GroupSlot& slot : behind.in_use()) look_at_leaf<Kit>(slot);
  for (GroupSlot& slot : ahead.in_use()) arrive_at_leaf(slot);
  if (behind.count == 0) return;
  for (GroupSlot& slot : behind.in_use()) {
    if (slot.goal == Goal::forward && slot.entry != 0) want_neighbour(slot);
  }
  while (answer_group(behind.in_use())) {  // scans that continue at the next leaf
    for (GroupSlot& slot : behind.in_use()) {
      if (slot.arriving) arrive_at_leaf(slot);
    }
    for (GroupSlot& slot : behind.in_use()) {
      if (slot.arriving) look_at_leaf<Kit>(slot);
    }
  }
  if (values_wanted_) answer_values(behind.in_use());
  end(behind);
}

// Answers the slots that have arrived; returns whether some must arrive again.
template <Access A>
inline bool HostExecutor<A>::answer_group(std::span<GroupSlot> slots) {
  bool more = false;
  for (GroupSlot& slot : slots) {
    if (!slot.arriving) continue;
    slot.arriving = false;
    if (slot.goal == Goal::point) {
      answer_point(slot);
    } else if (slot.goal == Goal::write) {
      answer_write(slot);
    } else if (is_proven(slot)) {
      answer_scan(slot, begin_of(slots.subspan(&slot - slots.data() + 1)));
    }
    more = more || slot.arriving;
  }
  return more;
}

template <Access A>
void HostExecutor<A>::end(Group& group) {
  group.count = 0;
  group.hinted = false;
  guard_.end(group.tick);
  if (!waiting_.empty()) answer_released_writes();
  if (wrote_) place_.ended_write();
  wrote_ = false;
}

// Two steps per level: the node's head selects the group of separators, which selects the child;
// then the child's page-table entry is prefetched, and the child's head.
template <Access A>
template <class Kit>
inline void HostExecutor<A>::descend(std::span<GroupSlot> slots, bool hinted) {
  if (slots.empty()) return;
  const wire::Ref root = map_.root_ref();
  const Geometry& g = map_.geometry;
  std::uint32_t level = NodeView(map_.at(root.offset()), g).level();
  for (GroupSlot& slot : slots) {
    slot.ref = root;
    slot.entry = 0;
    slot.arriving = false;
    slot.unproven = false;
    slot.guess = {};
    slot.lid = map_.root;
    slot.level = level;
    if (finger_.writes >= Finger::kWritesMin) slot.arriving = is_at_finger(slot);
  }
  if (hinted) [[unlikely]]
    level = enter_by_hints(slots, level);
  const bool alone = lanes_.lanes() == 1;  // no other work while prefetches are in flight
  for (; level != 0; --level) {
    for (GroupSlot& slot : slots) {
      if (slot.arriving || slot.level < level) continue;
      const std::byte* at = map_.at(slot.ref.offset());
      const NodeHead head = NodeHead::read(at);
      if (head.leaf() || !leads_by_head(slot, at, head, slot.ref)) {
        go_alone(slot);
        continue;
      }
      const NodeView node(at, g);
      slot.choice = choose_group(node, head, slot.key, Kit{});
      const std::byte* group = at + node.group_offset(slot.choice.first);
      __builtin_prefetch(group);
      __builtin_prefetch(group + 64);
      if (level == 1 && alone && guess_.is_worth(map_.leaves.load(std::memory_order_relaxed))) {
        guess_.prepare(slot.lid, slot.choice.first);
        slot.guess.place = 0;  // to be guessed
      }
    }
    for (GroupSlot& slot : slots) {
      if (slot.arriving || slot.level < level) continue;
      const NodeView node(map_.at(slot.ref.offset()), g);
      const std::uint32_t child = choose_child(node, slot.key, slot.choice, Kit{});
      const wire::Lid lid = node.child(child);
      slot.entry = map_.entry_offset(lid);
      __builtin_prefetch(map_.at(slot.entry));
      if (slot.guess.made()) [[unlikely]] {
        slot.guess = guess_.about(slot.lid, node, slot.choice, child);
        if (slot.guess.leaf != 0) {
          LeafGuess::ask(map_.memory, slot.guess, g, slot.goal != Goal::point);
        }
      }
      slot.lid = lid;
    }
    if (level == 1) break;
    for (GroupSlot& slot : slots) {
      if (slot.arriving || slot.level < level) continue;
      slot.ref = slot.entry != 0 ? map_.ref_at(slot.entry) : wire::Ref{};
      if (!slot.ref) {
        go_alone(slot);
        continue;
      }
      __builtin_prefetch(map_.at(slot.ref.offset()));
      want_group_heads(slot.ref);
    }
  }
  for (GroupSlot& slot : slots) slot.arriving = true;
}

// Requests with hints begin at the hinted nodes, the others at the root, in separate steps: the
// node's header, then the page-table entry. A hinted node is checked like any other for whether it
// may answer. Returns the highest level at which a request begins; 0: all at leaves.
template <Access A>
std::uint32_t HostExecutor<A>::enter_by_hints(std::span<GroupSlot> slots, std::uint32_t top) {
  for (GroupSlot& slot : slots) {
    if (!slot.hint) continue;
    slot.entry = place_.entry_of(slot.hint);
    __builtin_prefetch(map_.at(slot.entry));
  }
  std::uint32_t highest = 0;
  for (GroupSlot& slot : slots) {
    if (slot.hint) {
      const wire::Ref ref = place_.node_of(slot.hint, std::exchange(slot.entry, 0));
      if (ref) enter(slot, ref, top);
      if (!slot.arriving) want_group_heads(slot.ref);
    }
    if (!slot.arriving) highest = std::max(highest, slot.level);
  }
  place_.publish_hints();
  return highest;
}

// If the node is as high as the root, the request enters at the root.
template <Access A>
inline void HostExecutor<A>::enter(GroupSlot& slot, wire::Ref ref, std::uint32_t top) {
  const NodeView node(map_.at(ref.offset()), map_.geometry);
  const std::uint32_t level = node.level();
  if (level >= top) return;
  slot.ref = ref;
  slot.lid = node.lid();
  slot.level = level;
  slot.arriving = level == 0;
}

template <Access A>
inline void HostExecutor<A>::want_group_heads(wire::Ref node) const {
  const std::byte* at = map_.at(node.offset());
  __builtin_prefetch(at + map_.geometry.group_key_prefixes_begin);
  __builtin_prefetch(at + map_.geometry.group_key_prefixes_begin + 64);
}

// Continues the descent one request at a time.
template <Access A>
void HostExecutor<A>::go_alone(GroupSlot& slot) {
  find_anew(slot);
  slot.entry = 0;
  slot.arriving = true;
}

template <Access A>
void HostExecutor<A>::find_anew(GroupSlot& slot) {
  note_choice(slot, slot.ref);
  slot.ref = walk_to_leaf(slot, slot.ref);
}

template <Access A>
void HostExecutor<A>::note_choice(const Cursor& cursor, wire::Ref chosen) {
  const bool wrong =
      chosen && !NodeView(map_.at(chosen.offset()), map_.geometry).covers(cursor.key);
  wrong_choices_ += wrong ? 1 : 0;
}

// Whether the leaf covers the scan's key, if its fences were not compared before; else the scan
// arrives again, at another leaf.
template <Access A>
inline bool HostExecutor<A>::is_proven(GroupSlot& slot) {
  if (!std::exchange(slot.unproven, false)) [[likely]]
    return true;
  if (NodeView(map_.at(slot.ref.offset()), map_.geometry).covers(slot.key)) return true;
  ++wrong_choices_;
  slot.ref = {};
  slot.entry = 0;
  slot.arriving = true;
  return false;
}

template <Access A>
inline void HostExecutor<A>::arrive_at_leaf(GroupSlot& slot) {
  reached(Moment::leaf_chosen);
  if (slot.entry != 0) slot.ref = map_.ref_at(slot.entry);
  if (!slot.ref) go_alone(slot);
  const std::byte* leaf = map_.at(slot.ref.offset());
  if (slot.unproven) {
    want_fences(NodeView(leaf, map_.geometry), false);
  } else if (slot.goal == Goal::forward && !slot.first_leaf) {
    ScanAhead::want_next_leaf(leaf, map_.geometry);
  } else {
    want_leaf_head(leaf, map_.geometry, slot.goal != Goal::point);
  }
}

template <Access A>
template <class Kit>
inline void HostExecutor<A>::look_at_leaf(GroupSlot& slot) {
  const std::byte* at = map_.at(slot.ref.offset());
  NodeHead head = NodeHead::read(at);
  const bool believed = planted(Bug::hint_believed) && slot.hint && head.leaf();
  if (!believed && (!head.leaf() || !answers_by_head(slot, at, head, slot.ref))) [[unlikely]] {
    slot.unproven = !slot.unproven && head.leaf() && leads_by_head(slot, at, head, slot.ref);
    if (!slot.unproven) {
      go_alone(slot);
      at = map_.at(slot.ref.offset());
      head = NodeHead::read(at);
    }
  }
  const NodeView leaf(at, map_.geometry);
  if (slot.unproven && slot.goal != Goal::point) want_fences(leaf, true);
  probe_leaf(leaf, head, slot.key, Kit{}, slot.probe);
  slot.probed = true;
  if (slot.guess.made()) [[unlikely]] {
    guess_.learn(slot.guess, slot.ref.offset(), head.chunks(), slot.probe);
    slot.guess = {};
  }
  std::uint32_t end = slot.probe.end;
  if (slot.goal == Goal::forward) {
    end = slot.asked = scan_end(slot, leaf, Kit{});
  }
  base::prefetch(at + slot.probe.begin, at + end);
  // The completion reads the request, and callers often keep their state directly behind it.
  base::prefetch_line(slot.request);
  base::prefetch_line(reinterpret_cast<const std::byte*>(slot.request) + base::kLineBytes);
  if (slot.goal == Goal::forward) {
    return want_log_between(leaf, head, slot.probe.begin, slot.planned);
  }
  want_log_match(leaf, slot.probe);
  if (slot.goal != Goal::write) return;
  if (finds_log_full(slot, leaf, head.lock)) {  // it will be merged
    want_log(leaf, head);
  } else {
    want_log_end(leaf, head);
  }
}

// --- answers -------------------------------------------------------------------------------------

template <Access A>
inline void HostExecutor<A>::answer_point(GroupSlot& slot) {
  const NodeView leaf(map_.at(slot.ref.offset()), map_.geometry);
  Completion answer;
  bool out_of_line = false;
  answer.found = find_point(slot.key, leaf, slot.probe, slot.read_version, answer, out_of_line);
  if (!answer.found && slot.unproven && !planted(Bug::miss_believed)) [[unlikely]] {
    slot.entry = 0;
    slot.arriving = true;
    return;
  }
  if (out_of_line) [[unlikely]] {
    slot.stored = stored_value(map_, answer.value);
    slot.version = answer.version;
    values_wanted_ = true;
    return want_value(slot.stored);
  }
  answer.read_version = slot.read_version;
  complete(slot, answer);
}

// Prefetches the first lines of an out-of-line value; the hardware prefetcher fetches the rest.
template <Access A>
inline void HostExecutor<A>::want_value(std::string_view value) const {
  constexpr std::size_t kAhead = 512;
  const auto* const begin = reinterpret_cast<const std::byte*>(value.data());
  base::prefetch(begin, begin + std::min(value.size(), kAhead));
}

// Completes gets whose values were prefetched.
template <Access A>
void HostExecutor<A>::answer_values(std::span<GroupSlot> slots) {
  values_wanted_ = false;
  for (GroupSlot& slot : slots) {
    if (slot.stored.data() == nullptr) continue;
    Completion answer;
    answer.found = true;
    answer.value = std::exchange(slot.stored, {});
    answer.version = slot.version;
    answer.read_version = slot.read_version;
    complete(slot, answer);
  }
}

// --- instances per instruction set ---------------------------------------------------------------

#if defined(ESPALIER_HAVE_X86_KITS)
template <Access A>
void HostExecutor<A>::step_avx512() {
  step<Avx512Kit>();
}
template <Access A>
void HostExecutor<A>::step_avx2() {
  step<Avx2Kit>();
}
#endif

template <Access A>
void HostExecutor<A>::step_group() noexcept {
#if defined(ESPALIER_HAVE_X86_KITS)
  if (map_.kit.isa == Isa::avx512) return step_avx512();
  if (map_.kit.isa == Isa::avx2) return step_avx2();
#endif
  step<ScalarKit>();
}

}  // namespace espalier::tree

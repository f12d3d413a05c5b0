// SPDX-License-Identifier: Apache-2.0
// The engine's parts that do not wait. Included where an Engine is instantiated.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>
#include <utility>

#include "tree/engine.hpp"

namespace espalier::tree {

template <Access A>
Engine<A>::Engine(Worker& worker, MapCore& map, std::uint32_t lanes, const MakeAccess& make_access)
    : worker_(worker), map_(map), pins_(worker.slot, map.clock), ready_(lanes), lanes_(lanes) {
  if constexpr (A::kInPlace) {
    for (Group& group : groups_) group.slots.resize(std::clamp(lanes / 2, 1u, kGroup));
  }
  for (std::uint32_t i = 0; i < lanes; ++i) {
    lanes_[i].walk = walk(lanes_[i], make_access(i, ready_));
    ready_.push(lanes_[i].walk.handle());
  }
  while (!ready_.empty()) ready_.pop().resume();  // each walk runs up to its first wait
}

template <Access A>
void Engine<A>::submit(std::span<const Request> requests, Handler& handler) {
  if (requests.empty()) return;
  batches_.push_back({requests, &handler});
  queued_ += requests.size();
  pins_.stale();
}

template <Access A>
void Engine<A>::submit(const WalkRequest& request) {
  singles_.push_back(request);
  ++queued_;
  pins_.stale();
}

// Where there are groups, lanes take only what these hand to them.
template <Access A>
inline bool Engine<A>::take_request(Lane& lane) {
  if (starved_ != 0) return false;  // what is in flight ends first
  if (!singles_.empty()) {
    lane.task = singles_.front();
    singles_.pop_front();
  } else if (groups_[0].slots.empty() && next_batch()) {
    lane.task = {&current_.requests.front(), current_.handler, nullptr, {}, {}};
    current_.requests = current_.requests.subspan(1);
  } else {
    return false;
  }
  lane.attempts = 0;
  --queued_;
  ++busy_;
  return true;
}

// Makes the next request of a batch the first of `current_`; false if there is none.
template <Access A>
inline bool Engine<A>::next_batch() {
  if (!current_.requests.empty()) [[likely]]
    return true;
  if (batches_.empty()) return false;
  current_ = batches_.front();
  batches_.pop_front();
  return true;
}

template <Access A>
void Engine<A>::wake_lanes() {
  while (!idle_.empty() && take_request(*idle_.back())) {
    ready_.push(idle_.back()->walk.handle());
    idle_.pop_back();
  }
}

// One step of the groups, and one of each busy lane: neither keeps the other waiting. False if
// nothing could be done.
template <Access A>
inline bool Engine<A>::turn() {
  bool moved = group_has_work();
  if (moved) step_group();
  wake_lanes();
  for (std::size_t turns = busy_; turns != 0 && !ready_.empty(); --turns) {
    ready_.pop().resume();
    moved = true;
  }
  if (!waiting_.empty()) moved = settle_writes() || moved;
  return moved;
}

template <Access A>
std::size_t Engine<A>::poll() {
  const std::uint64_t before = completed_;
  while (completed_ == before && pending() != 0) {
    if (turn()) continue;
    if (waiting_.empty()) break;  // all wait for bytes that somebody else must bring
    std::this_thread::yield();    // for another thread to release its version
  }
  if (pending() == 0) pins_.idle();
  return pending();
}

template <Access A>
std::size_t Engine<A>::advance() {
  if (pending() != 0) turn();
  if (pending() == 0) pins_.idle();
  return pending();
}

template <Access A>
void Engine<A>::drain() {
  while (pending() != 0) {
    if (!turn()) std::this_thread::yield();
  }
  pins_.idle();
}

// --- beginning and ending a request ------------------------------------------------------------

template <Access A>
bool Engine<A>::prepare(Lane& lane) {
  const Request& request = *lane.task.request;
  lane.answer = {};
  lane.answer.tag = request.tag;
  lane.answer.op = request.op;
  lane.hint = lane.task.hint;
  if (lane.hint.offset() + map_.geometry.node_bytes > map_.store.region.bytes()) lane.hint = {};
  lane.lid = 0;
  lane.finding_floor = false;
  lane.stored_value = false;
  lane.other_predecessor = {};
  const bool scan =
      request.op == Op::scan || request.op == Op::scan_reverse || request.op == Op::scan_floor;
  if (request.key.size() > map_.geometry.key_bytes_max || (request.key.empty() && !scan) ||
      request.high.size() > map_.geometry.key_bytes_max) {
    complete(lane, Code::key_too_long, map_.geometry.key_bytes_max);
    return false;
  }
  switch (request.op) {
    case Op::get:
      lane.goal = Goal::point;
      lane.key.assign(request.key);
      break;
    case Op::put:
    case Op::insert:
    case Op::update:
    case Op::erase:
      if (!prepare_write(lane)) return false;
      break;
    case Op::floor:
    case Op::scan:
    case Op::scan_reverse:
    case Op::scan_floor:
      if (!prepare_scan(lane)) return false;
      break;
    default: complete(lane, Code::invalid_argument); return false;
  }
  pin(lane);
  // Looked at only now that an epoch is exposed: what expires from here on is kept for this walk.
  if (lane.task.held != nullptr && lane.task.held->expired.load(std::memory_order_seq_cst)) {
    complete(lane, Code::snapshot_expired);
    pins_.end(lane.tick);
    return false;
  }
  lane.answer.read_version = lane.read_version;
  if (lane.goal == Goal::write) lane.read_version = kNewest;
  lane.plain = map_.options.versions && (lane.goal == Goal::point || lane.goal == Goal::forward);
  return true;
}

template <Access A>
inline void Engine<A>::pin(Lane& lane) {
  lane.tick = pins_.begin();
  lane.read_version = lane.task.held != nullptr ? lane.task.held->version : pins_.version();
}

template <Access A>
bool Engine<A>::prepare_write(Lane& lane) {
  const Request& request = *lane.task.request;
  lane.goal = Goal::write;
  lane.key.assign(request.key);
  if (request.value.size() > wire::kValueBytesMax) {
    complete(lane, Code::value_too_long, wire::kValueBytesMax);
    return false;
  }
  if (request.op == Op::erase || request.value.size() <= map_.geometry.inline_value_bytes_max) {
    return true;
  }
  const auto value = store_value(worker_, map_, request.value);
  if (!value && lane.attempts++ < kAttempts) {
    starve(lane);
    return false;
  }
  if (!value) {
    complete(lane, value.error().code, value.error().detail);
    return false;
  }
  lane.value = *value;
  lane.stored_value = true;
  return true;
}

template <Access A>
bool Engine<A>::prepare_scan(Lane& lane) {
  const Request& request = *lane.task.request;
  const bool from_floor = request.op == Op::floor || request.op == Op::scan_floor;
  lane.scan.remaining = request.limit == 0 ? ~std::uint64_t{0} : request.limit;
  lane.scan.range = {!request.key.empty(), !request.high.empty()};
  lane.scan.low.assign(request.key);
  lane.scan.high.assign(request.high);
  lane.goal = request.op == Op::scan ? Goal::forward : Goal::backward;
  if (from_floor) {
    // The floor of a key is the first item that a descending walk from just above it meets.
    lane.finding_floor = true;
    lane.scan.range = {false, true};
    lane.scan.high.assign_successor(request.key);
    lane.scan.remaining = 1;
  }
  if (!from_floor && lane.scan.range.has_high && compare_keys(request.key, request.high) >= 0) {
    lane.scan.remaining = 0;
  }
  lane.key = lane.goal == Goal::forward ? lane.scan.low : lane.scan.high;
  return true;
}

template <Access A>
void Engine<A>::complete(Lane& lane) {
  --busy_;
  ++completed_;
  lane.answer.ok = lane.answer.error.code == Code::invalid;
  lane.task.handler->done(lane.answer);
  pins_.end(lane.tick);
  if (lane.goal == Goal::write && map_.store.reclaimer.due()) {
    map_.store.reclaimer.collect(worker_.cache);
  }
}

// Ends a request that was refused before it was picked up.
template <Access A>
void Engine<A>::complete(Lane& lane, Code code, std::uint32_t detail) {
  --busy_;
  ++completed_;
  lane.answer.ok = false;
  lane.answer.error = {code, 0, detail};
  lane.task.handler->done(lane.answer);
}

// Memory is short: what waits to be freed may be enough, but what is in flight on this core holds
// it. So the lane waits until all of that has ended, and nothing new begins meanwhile.
template <Access A>
void Engine<A>::starve(Lane& lane) {
  lane.starved = true;
  ++starved_;
}

// Once nothing that holds an epoch is in flight here, frees what can be freed and lets one lane
// try again.
template <Access A>
bool Engine<A>::feed(Lane& lane) {
  if (groups_[0].count != 0 || groups_[1].count != 0 || busy_ != starved_) return false;
  pins_.idle();
  if (lane.attempts > kAttempts) std::this_thread::yield();  // other threads' walks end, too
  make_room(worker_);
  lane.starved = false;
  --starved_;
  return true;
}

// --- on the way ----------------------------------------------------------------------------------

// Of two predecessors (rule 8) the key's head nearly always tells which one; where it does not, the
// second is asked first, and sends the walk to the other if it does not cover the key.
template <Access A>
wire::Ref Engine<A>::predecessor(Cursor& cursor, const NodeView& node) const {
  const wire::Ref second = node.old2_ref();
  if (!second) return node.old_ref();
  const bool from_end = cursor.goal == Goal::backward && cursor.key.bytes() == 0;
  const std::uint64_t border = node.old2_low_head();
  if (!from_end && cursor.key.head() < border) return node.old_ref();
  if (!from_end && cursor.key.head() == border) cursor.other_predecessor = node.old_ref();
  return second;
}

/// Idea 1 as it nearly always goes: this is the node that was meant, it is of this map, its fences'
/// heads enclose the key, and its versions the read version.
template <Access A>
inline bool Engine<A>::answers_at_once(const SearchKey& key, std::uint64_t read_version,
                                       const std::byte* node, const NodeHead& head,
                                       wire::Ref ref) const {
  const std::uint64_t word = key.head();
  const std::uint64_t meant = std::uint64_t{ref.generation()} << 32 | map_.id;
  constexpr std::uint64_t kIdentity = std::uint64_t{wire::kGenerationMask} << 32 | 0xFFFFFFFF;
  // The versions were read from a node that was still this one after them; so it stays while we are
  // pinned, for it is superseded, if at all, above our read version.
  return ((head.identity ^ meant) & kIdentity) == 0 && head.low_head < word &&
         word < head.high_head && head.created <= read_version && read_version < head.superseded &&
         (base::load_shared<std::uint32_t>(node + offsetof(wire::NodeHeader, generation)) &
          wire::kGenerationMask) == ref.generation();
}

/// Idea 1, in one place: may this node answer, and if not, where to go.
template <Access A>
inline typename Engine<A>::Judgement Engine<A>::judge(Lane& lane, const NodeView& node,
                                                      const NodeHead& head, wire::Ref ref) const {
  if (lane.plain && answers_at_once(lane.key, lane.read_version, node.bytes(), head, ref))
      [[likely]] {
    return {true, {}};
  }
  return redirect(lane, node, head, ref);
}

// The same with all that is rare.
template <Access A>
typename Engine<A>::Judgement Engine<A>::redirect(Cursor& cursor, const NodeView& node,
                                                  const NodeHead& head, wire::Ref ref) const {
  const auto meant = [&](std::uint32_t generation) {
    return (generation & wire::kGenerationMask) == ref.generation() ||
           planted(Bug::skip_generation_check);
  };
  if ((head.map_id() != map_.id && !planted(Bug::skip_map_check)) || !meant(head.generation())) {
    return {false, root_ref()};
  }
  if (head.created == wire::kNoNode) return {false, root_ref()};
  Verdict verdict = head.current_at(cursor.read_version, map_.options.versions);
  if (verdict == Verdict::older && planted(Bug::ignore_created)) verdict = Verdict::answers;
  if (verdict == Verdict::newer && planted(Bug::ignore_superseded)) verdict = Verdict::answers;
  switch (verdict) {
    case Verdict::older: {
      const wire::Ref old = predecessor(cursor, node);
      // Without a predecessor there was nothing older: what is here is all there ever was.
      if (old) return {false, old};
      break;
    }
    case Verdict::newer: {
      const wire::Ref successor = node.successor_ref();
      return {false, meant(node.generation()) && successor ? successor : root_ref()};
    }
    case Verdict::answers:
      if (!meant(node.generation())) return {false, root_ref()};
      break;
    default: return {false, root_ref()};
  }
  const bool descending = cursor.goal == Goal::backward && !planted(Bug::descending_like_ascending);
  const bool inside = descending ? node.covers_descending(cursor.key) : node.covers(cursor.key);
  if (!inside && !planted(Bug::skip_range_check)) {
    const wire::Ref other = std::exchange(cursor.other_predecessor, {});
    return {false, other ? other : root_ref()};
  }
  return {true, {}};
}

// The leaf that may answer, from any node or from the root, where nothing needs to be waited for:
// the same steps as the walk's own loop, in one piece.
template <Access A>
wire::Ref Engine<A>::find_leaf(Cursor& cursor, wire::Ref ref) const {
  const std::uint64_t as_of = map_.options.versions ? cursor.read_version : kNewest;
  for (;;) {
    while (!ref) ref = root_ref();
    const std::byte* at = map_.at(ref.offset());
    const NodeHead head = NodeHead::read(at);
    const NodeView node(at, map_.geometry);
    if (cursor.goal == Goal::backward || !answers_at_once(cursor.key, as_of, at, head, ref)) {
      const Judgement judgement = redirect(cursor, node, head, ref);
      if (!judgement.answers) {
        ref = judgement.next;
        continue;
      }
    }
    if (head.leaf()) return ref;
    const std::uint32_t child =
        cursor.goal == Goal::backward
            ? choose_child_descending(node, cursor.key)
            : choose_child(node, cursor.key, choose_group(node, head, cursor.key, map_.kit),
                           map_.kit);
    ref = map_.table.get(node.child(child));
  }
}

template <Access A>
inline void Engine<A>::want_head(A& access, const std::byte* image, const Lane& lane,
                                 Warmth warmth) const {
  const Geometry& g = map_.geometry;
  if (A::kInPlace && warmth != Warmth::cold) {  // an interior node: header and group heads
    access.want(image, 0, 64);
    access.want(image, g.group_heads_begin, 64);
  } else if (A::kInPlace && lane.goal == Goal::point) {  // all but the header's second line
    access.want(image, 0, 64);
    access.want(image, g.slots_begin, g.places_begin - g.slots_begin);
  } else {
    access.want(image, 0, g.sorted_begin);
  }
}

// Not in place: the fences, where their heads leave open if the node covers the key.
template <Access A>
void Engine<A>::want_fences(A& access, const NodeView& node, const Lane& lane) const {
  if (lane.goal != Goal::backward && lane.key.head() != node.low_head() &&
      lane.key.head() != node.high_head()) {
    return;
  }
  const std::uint32_t begin = std::min(node.fence_begin(), map_.geometry.node_bytes);
  access.want(node.bytes(), begin, map_.geometry.node_bytes - begin);
}

template <Access A>
void Engine<A>::want_leaf_part(A& access, const NodeView& leaf, const Lane& lane,
                               const LeafProbe& probe) const {
  const Geometry& g = map_.geometry;
  std::uint32_t begin = probe.begin;
  if (probe.tied && !A::kInPlace) {  // in place, the last of the tied chunks nearly always has it
    const std::uint32_t first = probe.rank.below == 0 ? 0 : probe.rank.below - 1;
    begin = g.sorted_begin + (first << g.chunk_shift);
  }
  if (probe.end > begin) access.want(leaf.bytes(), begin, probe.end - begin);
  if (lane.goal == Goal::write || (!A::kInPlace && probe.log_matches != 0)) {
    const std::uint32_t used = leaf.lock_word().units() * wire::kLogUnitBytes;
    const std::uint32_t log = std::min(leaf.log_begin(), g.node_bytes);
    access.want(leaf.bytes(), log, std::min(used + 64, g.node_bytes - log));
  } else if (probe.log_matches != 0) {
    if (const auto offset = leaf.log_offset(newest_match(probe.log_matches)); offset != 0) {
      access.want(leaf.bytes(), offset, 64);
    }
  }
}

// --- at the leaf ---------------------------------------------------------------------------------

template <Access A>
inline bool Engine<A>::find_point(const SearchKey& key, const NodeView& leaf,
                                  const LeafProbe& probe, std::uint64_t read_version,
                                  Completion& answer, bool& out_of_line) {
  if (probe.log_matches != 0) {
    if (const auto entry = find_in_log(leaf, key, probe.log_matches, read_version)) {
      if (entry->erase() && !planted(Bug::ignore_erase_marks)) return false;
      out_of_line = entry->out_of_line;
      answer.value = {entry->value, entry->value_bytes};
      answer.version = entry->version;
      return true;
    }
  }
  SortedItem item;
  if (!find_sorted(leaf, key, probe, item)) return false;
  out_of_line = item.out_of_line;
  answer.value = {item.value, item.value_bytes};
  answer.version = leaf.created();
  return true;
}

// Tries the write at this leaf.
template <Access A>
typename Engine<A>::WriteStep Engine<A>::write_here(Lane& lane, wire::Ref leaf,
                                                    std::uint64_t& wait_for) {
  WriteIntent intent;
  intent.op = lane.task.request->op;
  intent.key = &lane.key;
  intent.condition = lane.task.condition;
  intent.out_of_line = lane.stored_value;
  intent.value = lane.task.request->value;
  if (lane.stored_value) {
    intent.value = {reinterpret_cast<const char*>(&lane.value), sizeof lane.value};
  }
  const WriteOutcome outcome = write_in(leaf, intent);
  if (outcome.status == WriteStatus::busy) return WriteStep::try_again;
  if (outcome.status == WriteStatus::moved) return WriteStep::walk_again;
  const std::uint32_t attempts = intent.op == Op::erase ? kEraseAttempts : kAttempts;
  if (outcome.status == WriteStatus::out_of_memory && lane.attempts++ < attempts) {
    pins_.end(lane.tick);
    starve(lane);
    return WriteStep::starved;
  }
  report(outcome, lane.answer);
  if (lane.stored_value && !outcome.applied) discard_value(worker_, map_, lane.value);
  wait_for = waits_for(outcome);
  return WriteStep::decided;
}

template <Access A>
WriteOutcome Engine<A>::write_in(wire::Ref leaf, const WriteIntent& intent,
                                 const LeafProbe* known) {
  WriteOutcome outcome = write_to_leaf(worker_, map_, map_.at(leaf.offset()), intent, known);
  if (outcome.status == WriteStatus::restructure) {
    outcome = write_with_restructure(worker_, map_, intent);
    if (outcome.status == WriteStatus::busy) outcome.status = WriteStatus::moved;
  }
  return outcome;
}

// The version that must be released before the answer may be given.
template <Access A>
std::uint64_t Engine<A>::waits_for(const WriteOutcome& outcome) {
  const bool at_once = planted(Bug::acknowledge_before_release) ||
                       (planted(Bug::answer_unreleased) && !outcome.applied);
  return at_once ? 0 : outcome.wait_for;
}

template <Access A>
void Engine<A>::report(const WriteOutcome& outcome, Completion& answer) {
  answer.found = outcome.existed;
  answer.applied = outcome.applied;
  answer.version = outcome.version;
  if (outcome.status == WriteStatus::out_of_memory) answer.error.code = Code::out_of_memory;
  if (outcome.status == WriteStatus::condition_failed) answer.error.code = Code::condition_failed;
}

}  // namespace espalier::tree

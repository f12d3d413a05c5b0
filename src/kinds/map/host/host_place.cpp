// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/host/host_place.hpp"

#include <thread>

#include "base/clock.hpp"
#include "kinds/map/write/staged_value.hpp"

namespace espalier::tree {

std::uint64_t waits_for(const WriteOutcome& outcome) {
  const bool at_once = planted(Bug::acknowledge_before_release) ||
                       (planted(Bug::answer_unreleased) && !outcome.applied);
  return at_once ? 0 : outcome.wait_for;
}

void report(const WriteOutcome& outcome, Completion& answer) {
  answer.found = outcome.existed;
  answer.applied = outcome.applied;
  answer.version = outcome.version;
  if (outcome.status == WriteStatus::done) [[likely]]
    return;
  if (outcome.status == WriteStatus::out_of_memory) answer.error.code = Code::out_of_memory;
  if (outcome.status == WriteStatus::condition_failed) answer.error.code = Code::condition_failed;
  if (outcome.status == WriteStatus::refused) {
    answer.error = {outcome.refusal, 0, outcome.refused_detail};
  }
}

std::uint64_t HostPlaceBase::entry_of(wire::Ref hint) const {
  if (!map_.store.pool.is_buffer_begin(hint.offset(), memory::BufferKind::node,
                                       hint.generation())) {
    return 0;
  }
  // If the node is freed concurrently, its LID may be another node's, which is as good a hint.
  const NodeView node = map_.view(hint);
  return node.map_id() == map_.id ? map_.entry_offset(node.lid()) : 0;
}

wire::Ref HostPlaceBase::node_of(wire::Ref hint, std::uint64_t entry) {
  if (planted(Bug::hint_not_checked)) return hint;
  const wire::Ref now = entry != 0 ? map_.ref_at(entry) : wire::Ref{};
  // A split node stays in the table until it is free, and names its successor.
  const bool as_it_was = now == hint && map_.view(now).superseded() == wire::kLive;
  ++(!now ? hints_.refused : as_it_was ? hints_.admitted : hints_.moved);
  return now;
}

void HostPlaceBase::publish_hints() {
  const HintCounts counts = std::exchange(hints_, {});
  if (counts.admitted != 0) map_.hints.admitted.add(context_.index, counts.admitted);
  if (counts.moved != 0) map_.hints.moved.add(context_.index, counts.moved);
  if (counts.refused != 0) map_.hints.refused.add(context_.index, counts.refused);
}

Result<void> HostPlaceBase::begin_write(Lane& lane) {
  const Request& request = *lane.task.request;
  if (request.value.size() > wire::kValueBytesMax) {
    return fail(Code::value_too_long, wire::kValueBytesMax);
  }
  if (request.op == Op::erase || request.value.size() <= map_.geometry.inline_value_bytes_max) {
    return {};
  }
  if (lane.task.staged != nullptr) {
    lane.value = take_staged(map_, *lane.task.staged);
    lane.stored_value = true;
    return {};
  }
  const auto value = store_value(context_, map_, request.value);
  if (!value) return std::unexpected(value.error());
  lane.value = *value;
  lane.stored_value = true;
  return {};
}

// Tries the write at this leaf.
WriteStep HostPlaceBase::write(Lane& lane, wire::Ref leaf, std::uint64_t& wait_for) {
  WriteIntent intent;
  intent.op = lane.task.request->op;
  intent.key = &lane.key;
  intent.condition = lane.task.condition;
  intent.addition = lane.task.addition;
  intent.out_of_line = lane.stored_value;
  intent.value = lane.task.request->value;
  if (lane.stored_value) {
    intent.value = {reinterpret_cast<const char*>(&lane.value), sizeof lane.value};
  }
  const WriteOutcome outcome = write_in(context_, map_, leaf, intent);
  if (outcome.status == WriteStatus::busy) return WriteStep::try_again;
  if (outcome.status == WriteStatus::moved) return WriteStep::walk_again;
  if (outcome.status == WriteStatus::out_of_memory && may_try_again(lane)) {
    return WriteStep::out_of_memory;
  }
  report(outcome, lane.answer);
  if (lane.stored_value && !outcome.applied) discard_value(context_, map_, lane.value);
  wait_for = waits_for(outcome);
  return WriteStep::decided;
}

StarvedWrite HostPlaceBase::starved(const Lane& lane) {
  return {lane.task.request->op == Op::erase, lane.attempts, lane.starving_since_ns, false};
}

bool HostPlaceBase::may_try_again(const Lane& lane) const {
  StarvedWrite write = starved(lane);
  return tree::may_try_again(map_.store, write);
}

bool HostPlaceBase::make_room(Lane& lane) {
  if (!guard_.nothing_in_flight()) return false;
  guard_.idle();
  if (lane.attempts > kAttemptsAtOnce) {
    const std::uint64_t now = base::monotonic_ns();
    std::this_thread::yield();  // lets other threads' walks end, too
    if (now - lane.fed_ns < kStarvedPaceNs) return false;
    lane.fed_ns = now;
  }
  tree::make_room(map_.store, context_.cache, starved(lane));
  return true;
}

}  // namespace espalier::tree

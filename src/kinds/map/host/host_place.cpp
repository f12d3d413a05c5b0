// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/host/host_place.hpp"

#include <thread>

#include "base/clock.hpp"
#include "kinds/map/write/staged_value.hpp"

namespace espalier::tree {
namespace {

// Attempts that an erase has at least while readers hold memory: on a busy machine a second is few.
constexpr std::uint32_t kEraseAttemptsMax = 256;

}  // namespace

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
  if (outcome.status == WriteStatus::refused) answer.error.code = outcome.refusal;
}

bool HostPlaceBase::admits(wire::Ref hint) const {
  if (planted(Bug::hint_not_checked)) return true;
  if (!map_.store.pool.is_buffer_begin(hint.offset(), memory::BufferKind::node,
                                       hint.generation())) {
    return false;
  }
  const NodeView node = map_.view(hint);
  return node.map_id() == map_.id && map_.table.get(node.lid()) == hint;
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

bool HostPlaceBase::may_try_again(const Lane& lane) const {
  if (lane.attempts < kAttempts) return true;
  const StoreCore& store = map_.store;
  const bool erase = lane.task.request->op == Op::erase;
  if (!erase && !store.others_hold_memory()) return false;
  if (lane.attempts < (erase ? kEraseAttempts : kLeasedAttempts)) return true;
  const std::uint64_t waited = base::monotonic_ns() - lane.starving_since_ns;
  if (!erase) return waited < kLeasedTimeoutNs;
  const bool waits = store.reclaimer.waits_for_readers() || store.others_hold_memory();
  return waits && (waited < kEraseNs || lane.attempts < kEraseAttemptsMax);
}

bool HostPlaceBase::make_room(Lane& lane) {
  if (!guard_.nothing_in_flight()) return false;
  guard_.idle();
  if (lane.attempts > kAttempts) {
    const std::uint64_t now = base::monotonic_ns();
    std::this_thread::yield();  // other threads' walks end, too
    if (now - lane.fed_ns < kPaceNs) return false;
    lane.fed_ns = now;
    // Readers that are there have renewed by now. Whoever still holds what earlier erases have
    // freed may do so for ever, below what leases may hold: a slow scan, say.
    const bool claims = lane.task.request->op == Op::erase &&
                        now - lane.starving_since_ns > kEraseClaimsNs &&
                        map_.store.leases_hold_memory();
    if (claims) map_.store.leases.ask_for_sweep(map_.store.leases.oldest() + 1);
  }
  tree::make_room(context_, lane.attempts > 1);
  return true;
}

}  // namespace espalier::tree

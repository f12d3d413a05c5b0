// SPDX-License-Identifier: Apache-2.0
// The offload of transactions (store/transaction.hpp). A short one is carried out by the thread of
// the scheduler in one piece; a long one, and one that has found no memory, by a helper. Where the
// log is full it begins anew when there may be room.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "catalog/calls.hpp"
#include "catalog/redo_sink.hpp"
#include "catalog/unflushed_age.hpp"
#include "engine/own_calls.hpp"
#include "engine/principal.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "memory/version_clock.hpp"
#include "store/starved_write.hpp"
#include "store/store_core.hpp"
#include "store/transaction_request.hpp"

namespace espalier::offload {
namespace {

struct TransactState {
  std::vector<store::ObjectSteps> objects;  // empty: it was not read yet
  memory::VersionClock* clock = nullptr;
  std::optional<Result<store::Transacted>> done;
  std::string found;           // made before anything is written
  tree::StarvedWrite starved;  // `since_ns` 0: it has found memory so far
  bool is_long = false;        // not for the scheduler's thread
};

bool any_must_wait(const std::vector<store::ObjectSteps>& objects) {
  return std::ranges::any_of(objects, [](const store::ObjectSteps& each) {
    return catalog::must_wait_for_disk(*each.object);
  });
}

Next run_on_helper(Call& call, TransactState& state) {
  tree::StoreCore& store = call.services().store;
  return call.helper_steps_when_possible([&state, &store](StepContext&) {
    if (state.starved.since_ns != 0) tree::make_room(store, state.starved);
    state.done = store::transact(store, state.objects, {.waits = false, .answer = &state.found});
    return JobStep::done;
  });
}

// As other writes it waits a while for memory that others hold, and then on a helper, which makes
// room before. Nothing: it has found some, or is refused.
std::optional<Next> try_again(Call& call, TransactState& state) {
  if (*state.done || state.done->error().code != Code::out_of_memory) return std::nullopt;
  tree::StarvedWrite& starved = state.starved;
  if (starved.since_ns == 0) {
    starved.since_ns = base::monotonic_ns();
    starved.erases = store::only_erases(state.objects);
  }
  if (!tree::may_try_again(call.services().store, starved)) return std::nullopt;
  ++starved.attempts;
  state.done.reset();
  if (starved.attempts <= tree::kAttemptsAtOnce) return run_on_helper(call, state);
  return call.at(base::monotonic_ns() + tree::kStarvedPaceNs);
}

// Nothing here may fail for memory: it is done.
Next answer_transaction(Call& call, TransactState& state) {
  const store::Transacted& done = **state.done;
  if (state.clock->released_now() < done.wait_for) {
    if (!state.clock->failed()) return call.after_release();
    if (state.clock->released_now() < done.wait_for) return call.fail(catalog::kRecordLost);
  }
  if (done.refused) return call.fail(*done.refused);
  if (done.failed_step) return call.fail({Code::condition_failed, 0, *done.failed_step});
  if (!call.response_fits(state.found.size())) return call.writable();
  return answer(call, object_calls::TransactReply{done.version, state.found});
}

Next transact(Call& call, const object_calls::Transact& asked) {
  TransactState& state = call.state<TransactState>();
  if (state.objects.empty()) {
    auto objects = store::read_transaction(call.catalog(), asked, call.principal().prefix);
    if (!objects) return call.fail(objects.error().error, objects.error().words);
    state.clock = *store::clock_of(*objects);
    state.objects = *std::move(objects);
  }
  if (!state.done) {
    // So many others wait for their records to be durable, or have waited for so long.
    if (!state.clock->may_take() || any_must_wait(state.objects)) return call.after_release();
    if (state.is_long || state.starved.since_ns != 0) return run_on_helper(call, state);
    state.done = store::transact(call.services().store, state.objects,
                                 {.waits = false, .briefly = true, .answer = &state.found});
    state.is_long = *state.done && (*state.done)->too_long;
    if (state.is_long) {
      state.done.reset();
      return run_on_helper(call, state);
    }
  }
  if (const auto next = try_again(call, state)) return *next;
  if (*state.done) return answer_transaction(call, state);
  const Error error = state.done->error();
  if (error.code == Code::busy && call.may_wait_for_room()) return call.with_room();
  return call.fail(error);
}

const Offload kTransactionOffloads[] = {
    serve<object_calls::Transact, transact>({.waits_for_release = true})};

}  // namespace

std::span<const Offload> transaction_offloads() { return kTransactionOffloads; }

}  // namespace espalier::offload

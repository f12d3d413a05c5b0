// SPDX-License-Identifier: Apache-2.0
// The offload of transactions (store/transaction.hpp). A short one is carried out by the thread of
// the scheduler in one piece; a long one, and one that has found no memory, by a helper.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "catalog/calls.hpp"
#include "catalog/redo_sink.hpp"
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

// What is read and written in one piece by the thread on which all wait.
constexpr std::size_t kTransactionBytesHere = std::size_t{64} << 10;
constexpr std::uint64_t kReleaseLookNs = 20'000;    // between two looks at what is released
constexpr std::uint64_t kMemoryLookNs = 1'000'000;  // between two attempts without memory

struct TransactState {
  std::vector<store::ObjectSteps> objects;  // empty: it was not read yet
  memory::VersionClock* clock = nullptr;
  std::optional<Result<store::Transacted>> done;
  std::uint64_t starving_since_ns = 0;  // when it first found no memory
  std::string found;
};

// As other writes it waits a while for memory that others hold.
bool tries_again(Call& call, TransactState& state) {
  if (*state.done || state.done->error().code != Code::out_of_memory) return false;
  const std::uint64_t now = base::monotonic_ns();
  const bool first = state.starving_since_ns == 0;
  if (first) state.starving_since_ns = now;
  return first || (call.services().store.others_hold_memory() &&
                   now - state.starving_since_ns < tree::kLeasedTimeoutNs);
}

Next run_on_helper(Call& call, TransactState& state) {
  tree::StoreCore& store = call.services().store;
  return call.helper_steps_when_possible([&state, &store](StepContext&) {
    if (state.starving_since_ns != 0) tree::make_room(store, {false, 1, 0, false});
    state.done = store::transact(store, state.objects, false);
    return JobStep::done;
  });
}

Next answer_transaction(Call& call, TransactState& state) {
  const store::Transacted& done = **state.done;
  if (state.clock->released_now() < done.wait_for) {
    if (!state.clock->failed()) return call.at(base::monotonic_ns() + kReleaseLookNs);
    if (state.clock->released_now() < done.wait_for) return call.fail(catalog::kRecordLost);
  }
  if (done.failed_step) return call.fail({Code::condition_failed, 0, *done.failed_step});
  if (state.found.empty()) state.found = store::found_bytes(done);
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
    // So many others wait for their records to be durable.
    if (!state.clock->may_take()) return call.at(base::monotonic_ns() + kReleaseLookNs);
    if (asked.bytes.size() > kTransactionBytesHere) return run_on_helper(call, state);
    state.done = store::transact(call.services().store, state.objects, false);
  }
  if (tries_again(call, state)) {
    const bool soon = base::monotonic_ns() - state.starving_since_ns < kMemoryLookNs;
    state.done.reset();
    if (soon) return run_on_helper(call, state);
    return call.at(base::monotonic_ns() + kMemoryLookNs);
  }
  if (!*state.done) return call.fail(state.done->error());
  return answer_transaction(call, state);
}

const Offload kTransactionOffloads[] = {
    serve<object_calls::Transact, transact>({.waits_for_release = true})};

}  // namespace

std::span<const Offload> transaction_offloads() { return kTransactionOffloads; }

}  // namespace espalier::offload

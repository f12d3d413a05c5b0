// SPDX-License-Identifier: Apache-2.0
// The offloads of transactions (store/transaction.hpp). The scheduler's thread executes a short one
// in one piece; a helper executes a long one, and one that found no memory. If the log is full, it
// starts over when there may be room. A numbered one whose number another request is executing
// retries shortly after.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/durable_mark.hpp"
#include "catalog/calls.hpp"
#include "catalog/client_record.hpp"
#include "catalog/redo_sink.hpp"
#include "catalog/unflushed_age.hpp"
#include "engine/object_copy.hpp"
#include "engine/own_calls.hpp"
#include "engine/principal.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "memory/version_clock.hpp"
#include "store/numbered_clients.hpp"
#include "store/starved_write.hpp"
#include "store/store_core.hpp"
#include "store/transaction_request.hpp"

namespace espalier::offload {
namespace {

constexpr std::uint64_t kRepeatedPaceNs = 100'000;

struct TransactState {
  std::vector<store::ObjectSteps> objects;  // empty: not read yet
  memory::VersionClock* clock = nullptr;
  std::optional<Result<store::Transacted>> done;
  std::string found;       // reserved before anything is written
  store::ClientTurn turn;  // of a numbered one
  std::optional<store::RequestNumber> number;
  std::unique_ptr<store::KeptAnswer> known;  // the earlier outcome of its number
  tree::StarvedWrite starved;                // `since_ns` 0: it has found memory so far
  bool is_long = false;                      // not for the scheduler's thread
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
    state.done = store::transact(
        store, state.objects,
        {.waits = false, .answer = &state.found, .turn = state.turn ? &state.turn : nullptr});
    return JobStep::done;
  });
}

// A number that is refused for good is never executed, whatever is still under way.
Next refuse_number(Call& call, TransactState& state, const Error& error,
                   std::string_view words = {}) {
  if (store::is_refused_for_good(error)) state.turn.refuse(error);
  return call.fail(error, words);
}

// Like other writes, waits a while for memory that others hold, and then runs on a helper, which
// first frees some. Nothing: it has found some, or is refused.
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

store::NumberedClients& clients_of(Call& call) {
  return call.services().store.parts.of<store::NumberedClients>();
}

// Nothing: the record is durable.
std::optional<Next> await_record(Call& call, std::uint64_t sequence) {
  if (sequence == 0) return std::nullopt;
  base::DurableMark& mark = call.catalog().redo()->mark();
  const bool failed = mark.failed();
  if (mark.released() >= sequence) return std::nullopt;
  return failed ? call.fail(catalog::kRecordLost) : call.after_release();
}

// Waits until versions of its clock may be released. Objects without records wait for other writers
// alone, and no mark rises for them.
Next await_clock(Call& call, const TransactState& state) {
  const bool is_recorded = state.objects.front().object->redo() != nullptr;
  return is_recorded ? call.after_release() : call.again();
}

// Must not fail for memory: the transaction is done.
Next answer_transaction(Call& call, TransactState& state, bool is_numbered) {
  const store::Transacted& done = **state.done;
  if (state.clock->released_now() < done.wait_for) {
    if (!state.clock->failed()) return await_clock(call, state);
    if (state.clock->released_now() < done.wait_for) return call.fail(catalog::kRecordLost);
  }
  if (const auto next = await_record(call, done.sequence)) return *next;
  if (done.refused) return refuse_number(call, state, *done.refused);
  if (done.failed_step) return call.fail({Code::condition_failed, 0, *done.failed_step});
  if (!call.response_fits(state.found.size())) return call.writable();
  if (is_numbered) return answer(call, object_calls::OnceReply{done.version, true, state.found});
  return answer(call, object_calls::TransactReply{done.version, state.found});
}

// The earlier outcome of its number, under the same rules.
Next answer_known(Call& call, const store::KeptAnswer& known) {
  using Release = store::KeptAnswer::Release;
  const Release release = known.release(call.catalog().redo());
  if (release == Release::waits) return call.after_release();
  if (release == Release::lost) return call.fail(catalog::kRecordLost);
  switch (known.fact) {
    case catalog::ClientFact::done:
    case catalog::ClientFact::done_alone:
      if (!call.response_fits(known.bytes.size())) return call.writable();
      return answer(call, object_calls::OnceReply{
                              known.version, known.fact == catalog::ClientFact::done, known.bytes});
    case catalog::ClientFact::condition:
      return call.fail({Code::condition_failed, 0, static_cast<std::uint32_t>(known.version)});
    default: return call.fail(known.error);
  }
}

Next run_transaction(Call& call, const object_calls::Transact& asked, TransactState& state,
                     bool is_numbered) {
  if (state.objects.empty()) {
    auto objects = store::read_transaction(call.catalog(), asked, call.principal().prefix);
    if (!objects) return refuse_number(call, state, objects.error().error, objects.error().words);
    state.clock = *store::clock_of(*objects);
    state.objects = *std::move(objects);
  }
  if (!state.done) {
    // Too many others wait for durability, or have waited for too long.
    if (!state.clock->may_take()) return await_clock(call, state);
    if (any_must_wait(state.objects)) return call.after_release();
    if (state.is_long || state.starved.since_ns != 0) return run_on_helper(call, state);
    state.done = store::transact(call.services().store, state.objects,
                                 {.waits = false,
                                  .briefly = true,
                                  .answer = &state.found,
                                  .turn = state.turn ? &state.turn : nullptr});
    state.is_long = *state.done && (*state.done)->too_long;
    if (state.is_long) {
      state.done.reset();
      return run_on_helper(call, state);
    }
  }
  if (const auto next = try_again(call, state)) return *next;
  if (*state.done) return answer_transaction(call, state, is_numbered);
  const Error error = state.done->error();
  if (error.code == Code::busy && call.may_wait_for_room()) return call.with_room();
  return refuse_number(call, state, error);
}

Next transact(Call& call, const object_calls::Transact& asked) {
  return run_transaction(call, asked, call.state<TransactState>(), false);
}

std::string_view words_of_number(const Error& error) {
  if (error.code == Code::outdated) {
    return error.detail == 1 ? "the node does not know this client (any more)"
                             : "the number was acknowledged";
  }
  if (error.code == Code::exhausted) return "256 numbers are not acknowledged";
  if (error.code == Code::already_exists) return "another transaction had this number";
  return {};
}

Next transact_once(Call& call, const object_calls::TransactOnce& asked) {
  TransactState& state = call.state<TransactState>();
  if (state.known != nullptr) return answer_known(call, *state.known);
  if (!state.turn && !state.done) {
    if (!state.number) state.number = store::number_of(asked);
    auto begun = clients_of(call).begin(*state.number, call.principal().name);
    if (!begun) return call.fail(begun.error(), words_of_number(begun.error()));
    if (begun->waits()) return call.at(base::monotonic_ns() + kRepeatedPaceNs);
    state.known = std::move(begun->answer);
    if (state.known != nullptr) return answer_known(call, *state.known);
    state.turn = std::move(begun->turn);
  }
  return run_transaction(call, asked.what(), state, true);
}

struct ForgetState {
  std::optional<std::uint64_t> sequence;  // of the record that forgets it
};

Next refuse_client(Call& call, const Error& error) {
  const bool wants_room = error.code == Code::busy && error.detail != store::NumberedClients::kRuns;
  if (wants_room && call.may_wait_for_room()) return call.with_room();
  return call.fail(error, words_of_number(error));
}

Next forget_client(Call& call, const object_calls::TransactionClient& asked) {
  ForgetState& state = call.state<ForgetState>();
  if (!state.sequence) {
    const auto done =
        clients_of(call).forget(asked.client, call.principal().name, call.catalog().redo());
    if (!done) return refuse_client(call, done.error());
    state.sequence = *done;
  }
  if (const auto next = await_record(call, *state.sequence)) return *next;
  return answer(call, object_calls::ClientReply{});
}

// Every later record of a client follows that of its creation, so this one need not be durable.
Next serve_client(Call& call, const object_calls::TransactionClient& asked) {
  store::NumberedClients& clients = clients_of(call);
  catalog::RedoSink* const sink = call.catalog().redo();
  const auto wish = static_cast<object_calls::ClientWish>(asked.wish);
  if (wish == object_calls::ClientWish::forgotten) return forget_client(call, asked);
  const bool kept = wish == object_calls::ClientWish::made_kept;
  const auto made = clients.make(call.principal().name, kept, sink);
  if (!made) return refuse_client(call, made.error());
  return answer(call, object_calls::ClientReply{*made});
}

class NumberedClientsCopy final : public ObjectCopy {
 public:
  explicit NumberedClientsCopy(const store::NumberedClients& clients) : clients_(clients) {}

  Result<CopyStep> next(CopyPiece& piece) override {
    const auto add = [&](const catalog::ClientRecord& record, std::string_view bytes) {
      const auto room = piece.add(catalog::client_record_bytes(bytes.size()));
      if (room.empty()) return;
      std::ranges::fill(room, std::byte{0});
      catalog::write_client_record(room, record, bytes);
    };
    while (!piece.full()) {
      if (!clients_.copy_some(place_, add)) return CopyStep::done;
    }
    return CopyStep::more;
  }

 private:
  const store::NumberedClients& clients_;
  store::NumberedClients::Place place_;
};

std::unique_ptr<ObjectCopy> copy_clients(Services& services) {
  return std::make_unique<NumberedClientsCopy>(services.store.parts.of<store::NumberedClients>());
}

const Offload kTransactionOffloads[] = {
    serve<object_calls::Transact, transact>({.waits_for_release = true}),
    serve<object_calls::TransactionClient, serve_client>({.waits_for_release = true}),
    serve<object_calls::TransactOnce, transact_once>({.waits_for_release = true})};

}  // namespace

const KindRedo kNumberedClientsRedo{.copy_others = copy_clients};

std::span<const Offload> transaction_offloads() { return kTransactionOffloads; }

}  // namespace espalier::offload

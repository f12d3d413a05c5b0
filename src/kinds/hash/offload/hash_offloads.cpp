// SPDX-License-Identifier: Apache-2.0
// Offloads of hash maps: create, open, statistics, and the operations on one item, each in its turn
// (hash_call.hpp). A get is answered in the turn in which it is read. A write that is released
// immediately, as nearly all are, is answered in the turn in which it begins.
#include "kinds/hash/offload/hash_offloads.hpp"

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "catalog/redo_sink.hpp"
#include "engine/connection.hpp"
#include "engine/long_answer.hpp"
#include "engine/object_call.hpp"
#include "engine/one_sided_fields.hpp"
#include "engine/one_sided_host.hpp"
#include "kinds/hash/execute.hpp"
#include "kinds/hash/offload/hash_call.hpp"
#include "kinds/hash/offload/walk_piece.hpp"
#include "memory/staged_bytes.hpp"
#include "store/starved_write.hpp"

namespace espalier::offload {
namespace {

using hash::HashMap;

Next create_hash(Call& call, const hash_calls::Create& asked) {
  const auto durability = wire::durability_of(asked.durability);
  if (const auto words = call.why_not(durability)) {
    return call.fail({Code::unsupported, 0, 0}, *words);
  }
  if (asked.shape.versions == 0 && call.is_durable(durability)) {
    return call.fail({Code::unsupported, 0, 0},
                     "hash maps of a node with a data folder keep versions, but those of "
                     "durability none: without them readers see what a crash can lose");
  }
  return obtain_object(call, asked);
}

Next hash_stats(Call& call, const hash_calls::Stats& asked) {
  return answer_or_fail(call, execute(*hash_of(call), asked));
}

// --- reading -------------------------------------------------------------------------------------

/// A long value in flight.
struct HashReadState {
  std::unique_ptr<LongAnswer> answer;
};

Next begin_long_pair(Call& call, const HashTurn& turn) {
  const hash_calls::ItemFound& found = *turn.found;
  HashReadState& state = call.state<HashReadState>();
  state.answer = std::make_unique<LongAnswer>(call, hash_of(call), pin_found(*hash_of(call), turn),
                                              std::string_view(), found.value);
  const wire::ReplyMessage<hash_calls::ItemFound> message(found);
  state.answer->header = message.header();
  return state.answer->copy(call);
}

// A value that does not fit yet is read again when it does.
Next got_pair(Call& call, const HashTurn& turn) {
  const hash_calls::ItemFound& found = *turn.found;
  if (!call.response_fits(found.value.size())) return call.writable();
  if (found.value.size() > kLongValueBytes) [[unlikely]]
    return begin_long_pair(call, turn);
  return answer(call, found);
}

Next hash_get(Call& call, const hash_calls::Get&) {
  if (const auto* const state = call.find_state<HashReadState>()) {
    return go_on(call, *state->answer);
  }
  return await_read(call);
}

// In its turn the request is not parsed again.
constexpr Offload serve_hash_get() {
  Offload made = serve_on_hash<hash_calls::Get, hash_get>();
  made.step = [](Call& call) {
    const HashTurn* const turn = turn_of(call);
    return turn != nullptr ? got_pair(call, *turn) : read_and_step<hash_calls::Get, hash_get>(call);
  };
  return made;
}

Next open_hash_reads(Call& call, const hash_calls::OpenReads&) {
  OneSidedHost* const host = OneSidedHost::of(call.connection());
  if (host == nullptr) return call.fail({Code::unsupported, 0, 0});
  const Result<hash::HashPlace> place = hash_calls::place_of(*hash_of(call));
  if (!place) return call.fail(place.error());
  return answer_one_sided(call, *host, wire::FieldKind::hash, base::bytes_of(*place));
}

struct HashWalkState {
  std::unique_ptr<WalkPiece> piece;
};

Next hash_walk(Call& call, const hash_calls::Walk& asked) {
  HashWalkState* state = call.find_state<HashWalkState>();
  if (state == nullptr) {
    if (!call.response_fits(hash::kWalkBytesMax)) return call.writable();  // before it is gathered
    auto piece = std::make_unique<WalkPiece>(hash_of(call), asked.after);
    state = &call.new_state<HashWalkState>();
    state->piece = std::move(piece);
  }
  WalkPiece& piece = *state->piece;
  if (!piece.whole()) {
    return call.helper_steps_when_possible(
        [&piece](StepContext& context) { return piece.gather(context); });
  }
  if (piece.error()) return call.fail(*piece.error());
  if (!call.response_fits(piece.items().size())) return call.writable();
  return answer(call, hash_calls::Walked{piece.more(), piece.count(), piece.items()});
}

// --- writing -------------------------------------------------------------------------------------

/// A write that is not over in its first step: it waits for a release or for memory, or has long
/// values.
template <class Request>
struct HashWriteState {
  std::optional<hash_calls::LongComparison> comparison;  // of the expected value, if that is long
  std::optional<memory::StagedBytes> staged;             // of the new value, if that is long
  std::optional<hash::Unreleased<typename Request::Reply>> begun;
  tree::StarvedWrite starved;
  bool makes_room = false;  // before the next attempt
};

template <class Request>
std::string_view value_of(const Request& asked) {
  if constexpr (requires { asked.value; }) return asked.value;
  return {};
}

/// The value to compare with that of the key.
template <class Request>
std::string_view expected_of(const Request& asked) {
  if constexpr (requires { asked.expected; }) {
    if (wire::condition_kind(asked.comparison.kind) == ConditionKind::value) return asked.expected;
  }
  return {};
}

/// Whether it needs memory only temporarily.
template <class Request>
bool takes_out(const Request& asked) {
  if constexpr (requires { asked.comparison; }) return asked.comparison.erase != 0;
  return Request::kCall.id == wire::OffloadId::hash_erase;
}

template <class Request>
bool has_long_value(const Request& asked) {
  return value_of(asked).size() > kLongValueBytes || expected_of(asked).size() > kLongValueBytes;
}

Next compare(Call& call, hash_calls::LongComparison& comparison) {
  return call.helper_steps_when_possible([&comparison](StepContext& context) {
    while (!comparison.step(kCopiedBytes)) {
      if (context.should_return()) return JobStep::again;
    }
    return JobStep::done;
  });
}

template <class Reply>
bool found_no_memory(const hash::Unreleased<Reply>& begun) {
  return !begun.answer && begun.answer.error().code == Code::out_of_memory;
}

// Helpers compare the expected value and copy the new one, then the write is begun.
// Nothing: it has begun.
template <class Request>
std::optional<Next> prepare_long(Call& call, HashWriteState<Request>& state, const Request& asked) {
  const auto refuse = [&](const Error& error, std::uint64_t version = 0) {
    state.begun.emplace(std::unexpected(error), version);
    return std::nullopt;
  };
  if (expected_of(asked).size() > kLongValueBytes) {
    if (!state.comparison) {
      auto begun = hash_calls::LongComparison::begin(*hash_of(call), asked.key, expected_of(asked));
      if (!begun) return refuse(begun.error());
      state.comparison.emplace(*std::move(begun));
    }
    if (!state.comparison->is_over()) return compare(call, *state.comparison);
    if (state.comparison->differs()) {
      return refuse({Code::condition_failed, 0, 0}, state.comparison->version());
    }
  }
  if (value_of(asked).size() > kLongValueBytes) {
    if (!state.staged) {
      auto staged = hash_calls::stage(*hash_of(call), asked.key, value_of(asked));
      if (!staged) return refuse(staged.error());
      state.staged.emplace(*std::move(staged));
    }
    if (!state.staged->is_whole()) return copy_staged(call, *state.staged);
  }
  return std::nullopt;
}

template <class Request>
std::optional<Next> begin_prepared(Call& call, HashWriteState<Request>& state,
                                   const Request& asked) {
  if (has_long_value(asked)) {
    if (auto next = prepare_long(call, state, asked)) return next;
    if (state.begun) return std::nullopt;
  }
  hash::WriteHelp help;
  if (state.staged) help.staged = &*state.staged;
  if (state.comparison) help.expected = &state.comparison->seen();
  state.begun.emplace(hash_calls::begin(*hash_of(call), asked, help));
  const Result<typename Request::Reply>& answer = state.begun->answer;
  const bool other_came =
      state.comparison && !answer && answer.error().code == Code::condition_failed;
  if (!other_came) return std::nullopt;
  state.begun.reset();
  state.comparison.reset();  // the compared record is gone
  return call.again();
}

// Makes room on a helper, and then retries; with a pause if it waits for other threads.
template <class Request>
Next try_again(Call& call, HashWriteState<Request>& state) {
  if (!std::exchange(state.makes_room, true)) {
    ++state.starved.attempts;
    state.begun.reset();
    if (state.starved.attempts > tree::kAttemptsAtOnce) {
      return call.at(base::monotonic_ns() + tree::kStarvedPaceNs);
    }
  }
  return call.helper_steps_when_possible([&state, &map = *hash_of(call)](StepContext&) {
    hash_calls::make_room(map, state.starved);
    state.makes_room = false;
    return JobStep::done;
  });
}

// For a write that was executed: if records must be durable, its answer waits only for its release.
template <class Reply>
std::optional<Next> answer_written(Call& call, const hash::Unreleased<Reply>& begun) {
  HashMap& map = *hash_of(call);
  const bool no_room = !begun.answer && begun.answer.error().code == Code::busy;
  if (no_room && hash_calls::is_recorded(map) && call.may_wait_for_room()) return call.with_room();
  if (!hash_calls::released(map, begun.version)) {
    if (!hash_calls::is_recorded(map) || !call.is_durable()) return std::nullopt;
    call.wait_for(begun.version);
  }
  return answer_or_fail(call, begun.answer);
}

template <class Request>
Next go_on_writing(Call& call, HashWriteState<Request>& state, const Request& asked) {
  if (state.makes_room) return try_again(call, state);
  if (!state.begun) {
    if (hash_calls::is_recorded(*hash_of(call)) && !hash_calls::may_begin(*hash_of(call))) {
      return call.after_release();
    }
    if (auto next = begin_prepared(call, state, asked)) return *next;
  }
  if (found_no_memory(*state.begun)) [[unlikely]] {
    if (state.starved.since_ns == 0) state.starved.since_ns = base::monotonic_ns();
    if (hash_calls::may_try_again(*hash_of(call), state.starved)) return try_again(call, state);
  }
  if (const auto answered = answer_written(call, *state.begun)) return *answered;
  if (hash_calls::is_lost(*hash_of(call))) return call.fail(catalog::kRecordLost);
  return call.again();
}

template <class Request>
Next write_hash(Call& call, const Request& asked) {
  using State = HashWriteState<Request>;
  if (State* const state = call.find_state<State>()) return go_on_writing(call, *state, asked);
  const bool is_long = has_long_value(asked);
  const HashTurn* const turn = turn_of(call);
  if (turn == nullptr && !is_long) return await_write(call);
  HashMap& map = *hash_of(call);
  std::optional<hash::Unreleased<typename Request::Reply>> begun;
  if (!is_long && (!hash_calls::is_recorded(map) || hash_calls::may_begin(map))) [[likely]] {
    begun.emplace(hash_calls::begin(map, asked, {.hash = &turn->hash}));
    if (!found_no_memory(*begun)) [[likely]] {
      if (const auto answered = answer_written(call, *begun)) return *answered;
    }
  }
  State* state = nullptr;
  try {
    state = &call.new_state<State>();
  } catch (const std::bad_alloc&) {
    if (!begun) throw;
    // An executed write must be answered.
    if (hash_calls::wait_for(map, begun->version)) return answer_or_fail(call, begun->answer);
    return call.fail(catalog::kRecordLost);
  }
  state->begun = std::move(begun);
  state->starved.erases = takes_out(asked);
  return go_on_writing(call, *state, asked);
}

template <class Request>
constexpr Offload serve_hash_write() {
  return serve_on_hash<Request, write_hash<Request>>({.waits_for_release = true});
}

const Offload kHashOffloads[] = {
    serve<hash_calls::Create, create_hash>(),
    serve_opening<hash_calls::Open>(),
    serve_on_hash<hash_calls::Stats, hash_stats>(),
    serve_hash_get(),
    serve_hash_write<hash_calls::Put>(),
    serve_hash_write<hash_calls::Insert>(),
    serve_hash_write<hash_calls::Update>(),
    serve_hash_write<hash_calls::Erase>(),
    serve_hash_write<hash_calls::CompareAndSet>(),
    serve_hash_write<hash_calls::Add>(),
    serve_on_hash<hash_calls::Walk, hash_walk>(),
    serve_on_hash<hash_calls::OpenReads, open_hash_reads>(),
};

}  // namespace

std::span<const Offload> hash_offloads() { return kHashOffloads; }

}  // namespace espalier::offload

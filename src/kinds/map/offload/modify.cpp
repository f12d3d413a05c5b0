// SPDX-License-Identifier: Apache-2.0
// Offloads that change a value depending on its current state: compare-and-set and add.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.hpp"
#include "base/epoch_pins.hpp"
#include "engine/typed_call.hpp"
#include "kinds/map/item_calls.hpp"
#include "kinds/map/offload/long_value.hpp"
#include "kinds/map/offload/map_offloads.hpp"
#include "kinds/map/offload/walk_answer.hpp"
#include "kinds/map/offload/walk_call.hpp"
#include "kinds/map/walk/walk_request.hpp"
#include "memory/staged_bytes.hpp"
#include "wire/item_limits.hpp"

namespace espalier::offload {
namespace {

using Kind = ConditionKind;

// --- compare-and-set: one walk, unless a value is long -------------------------------------------

/// State for long values. Helpers compare the expected value with what a get found, and copy the
/// new value; the final, writing walk is conditional on the version that was found.
struct LongComparison {
  enum class Stage : std::uint8_t { reads, compares, stages, writes };

  // A condition on a version can fail although the item is unchanged, when its leaf is rebuilt, so
  // the retries are bounded.
  static constexpr int kRounds = 3;

  Stage stage = Stage::reads;
  int round = 0;
  bool differs = false;
  std::string_view expected;  // empty: the writing walk compares
  std::size_t equal = 0;      // bytes of it compared so far
  std::string_view found;     // pinned meanwhile
  base::EpochPin pin;
  std::uint64_t version = 0;  // of the found value
  std::optional<memory::StagedBytes> staged;

  [[nodiscard]] bool is_compared() const { return differs || equal == expected.size(); }
};

// Without versions the writing walk compares, in one piece.
bool compares_apart(Call& call, const map_calls::CompareAndSet& asked) {
  return asked.expected.size() > kLongValueBytes && map_of(call).keeps_versions() &&
         *wire::condition_kind(asked.comparison.kind) == Kind::value;
}
bool stages(const map_calls::CompareAndSet& asked) {
  return asked.value.size() > kLongValueBytes && asked.value.size() <= wire::kValueBytesMax;
}

// Another write intervened. If it is not released yet, a get would find the same value again.
Next read_again(Call& call) {
  const std::uint64_t version = call.waits_for();
  return version != 0 ? wait_for_release(call, version) : call.again();
}

JobStep compare_pieces(StepContext& context, LongComparison& state) {
  while (!state.is_compared()) {
    const std::string_view piece = state.expected.substr(state.equal, kCopiedBytes);
    state.differs = piece != state.found.substr(state.equal, piece.size());
    state.equal += piece.size();
    if (context.should_return()) break;
  }
  return state.is_compared() ? JobStep::done : JobStep::again;
}

Next compare(Call& call, LongComparison& state) {
  return call.helper_steps_when_possible(
      [&state](StepContext& context) { return compare_pieces(context, state); });
}

Next write_as_compared(Call& call, const map_calls::CompareAndSet& asked, LongComparison& state) {
  state.stage = LongComparison::Stage::writes;
  new_walk(call, asked.comparison.erase != 0 ? Op::erase : Op::put).value = asked.value;
  Condition condition{Kind::version, state.version, {}};
  if (state.expected.empty()) {
    condition = {*wire::condition_kind(asked.comparison.kind), asked.comparison.version,
                 asked.expected};
  }
  return state.staged ? begin_walk(call, *state.staged, condition)
                      : begin_walk(call, nullptr, condition);
}

Next compare_and_set_long(Call& call, const map_calls::CompareAndSet& asked) {
  using Stage = LongComparison::Stage;
  LongComparison& state = call.state<LongComparison>();
  const bool apart = state.round < LongComparison::kRounds && compares_apart(call, asked);
  if (state.stage == Stage::reads && apart) {
    state.expected = asked.expected;
    new_walk(call, Op::get);
    return begin_walk(call);
  }
  if (state.stage == Stage::compares) {
    if (!state.is_compared()) return compare(call, state);
    state.pin = base::EpochPin();
    if (state.differs) return call.fail({Code::condition_failed, 0, 0});
  }
  if (state.stage != Stage::stages) {
    state.stage = Stage::stages;
    if (stages(asked)) state.staged = map_of(call).stage(asked.value);
  }
  if (state.staged && !state.staged->is_whole()) return copy_staged(call, *state.staged);
  return write_as_compared(call, asked, state);
}

// Values of different lengths differ.
Next compare_found(Call& call, LongComparison& state, const Completion& found) {
  if (!found.ok) return call.fail(found.error);
  if (!found.found || found.value.size() != state.expected.size()) {
    return call.fail({Code::condition_failed, 0, 0});
  }
  state.stage = LongComparison::Stage::compares;
  state.version = found.version;
  state.found = found.value;
  state.pin = map_of(call).pin();
  if (state.pin) return compare(call, state);
  state.differs = found.value != state.expected;  // the value is valid only in this step
  state.equal = found.value.size();
  return call.again();
}

Next compared(Call& call, const Completion& done) {
  LongComparison* const state = call.find_state<LongComparison>();
  if (state == nullptr) [[likely]]
    return answer_walk(call, done);
  if (state->stage == LongComparison::Stage::reads) return compare_found(call, *state, done);
  const bool other_came = !done.ok && done.error.code == Code::condition_failed;
  if (!other_came || state->expected.empty()) return answer_walk(call, done);
  const int round = state->round + 1;
  call.new_state<LongComparison>().round = round;  // the compared value was replaced
  return read_again(call);
}

Next compare_and_set(Call& call, const map_calls::CompareAndSet& asked) {
  if (stages(asked) || compares_apart(call, asked)) [[unlikely]]
    return compare_and_set_long(call, asked);
  new_walk(call, asked.comparison.erase != 0 ? Op::erase : Op::put).value = asked.value;
  const Kind kind = *wire::condition_kind(asked.comparison.kind);  // validated before
  return begin_walk(call, nullptr, {kind, asked.comparison.version, asked.expected});
}

// --- add: one walk, which reads and writes under the leaf's lock ---------------------------------

Next add(Call& call, const map_calls::Add& asked) {
  const Completion* const done = ended_walk(call);
  tree::Addition& addition = call.state<tree::Addition>();
  if (done == nullptr) {
    addition.amount = asked.amount;
    new_walk(call, Op::put).value = base::bytes_of(addition.sum);
    return begin_walk(call, addition);
  }
  if (!done->ok) return call.fail(done->error);
  return answer(call, map_calls::Summed{done->found, true, done->version, addition.sum});
}

const Offload kModifyOffloads[] = {
    serve_walk<map_calls::CompareAndSet, compare_and_set, compared>(),
    serve_map<map_calls::Add, add>()};

}  // namespace

std::span<const Offload> modify_offloads() { return kModifyOffloads; }

}  // namespace espalier::offload

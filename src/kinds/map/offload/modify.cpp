// SPDX-License-Identifier: Apache-2.0
// Offloads that change a value by what it is: compare-and-set and add.
#include <cstring>
#include <string>

#include "base/bytes.hpp"
#include "engine/typed_call.hpp"
#include "kinds/map/item_calls.hpp"
#include "kinds/map/offload/map_offloads.hpp"
#include "kinds/map/offload/walk_answer.hpp"
#include "kinds/map/offload/walk_call.hpp"

namespace espalier::offload {
namespace {

using Kind = ConditionKind;

Next compare_and_set(Call& call, const map_calls::CompareAndSet& asked) {
  new_walk(call, asked.comparison.erase != 0 ? Op::erase : Op::put).value = asked.value;
  const Kind kind = *wire::condition_kind(asked.comparison.kind);  // no fault was found
  return begin_walk(call, nullptr, {kind, asked.comparison.version, asked.expected});
}

// --- add: a get, and a put on the condition that nothing came between ----------------------------

struct AddState {
  bool writing = false;   // the walk in hand is the put
  std::string expected;   // what the get found
  std::uint64_t sum = 0;  // to be written
};

Next begin_add(Call& call) {
  call.state<AddState>().writing = false;
  new_walk(call, Op::get);
  return begin_walk(call);
}

Next put_sum(Call& call, const Completion& found, std::uint64_t amount) {
  if (!found.ok) return call.fail(found.error);
  std::uint64_t sum = 0;
  if (found.found && found.value.size() != sizeof sum) {
    return call.fail({Code::invalid_argument, 0, static_cast<std::uint32_t>(found.value.size())});
  }
  if (found.found) std::memcpy(&sum, found.value.data(), sizeof sum);
  sum += amount;  // wraps round, as counters do
  AddState& state = call.state<AddState>();
  state.expected.assign(found.value);
  state.sum = sum;
  state.writing = true;
  Condition condition;
  const bool versions = map_of(call).keeps_versions();
  condition.kind = !found.found ? Kind::absent : versions ? Kind::version : Kind::value;
  condition.version = found.version;
  condition.value = state.expected;
  new_walk(call, Op::put).value = base::bytes_of(state.sum);
  return begin_walk(call, nullptr, condition);
}

Next add(Call& call, const map_calls::Add& asked) {
  const Completion* const done = ended_walk(call);
  if (done == nullptr) return begin_add(call);
  AddState& state = call.state<AddState>();
  if (!state.writing) return put_sum(call, *done, asked.amount);
  // Another write came between.
  if (!done->ok && done->error.code == Code::condition_failed) return begin_add(call);
  if (!done->ok) return call.fail(done->error);
  return answer(call, map_calls::Summed{done->found, true, done->version, state.sum});
}

const Offload kModifyOffloads[] = {
    serve_walk<map_calls::CompareAndSet, compare_and_set, answer_walk>(),
    serve_map<map_calls::Add, add>()};

}  // namespace

std::span<const Offload> modify_offloads() { return kModifyOffloads; }

}  // namespace espalier::offload

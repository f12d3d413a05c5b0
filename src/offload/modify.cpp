// SPDX-License-Identifier: Apache-2.0
// Offloads that change a value by what it is: compare-and-set and add.
#include <cstring>
#include <string>

#include "offload/payload_reader.hpp"
#include "offload/walk_answer.hpp"

namespace espalier::offload {
namespace {

using Kind = ConditionKind;

Next compare_and_set(Call& call) {
  if (const Completion* const done = call.walked()) return answer_walk(call, *done);
  PayloadReader reader(call.payload());
  const auto comparison = reader.take<wire::Comparison>();
  Condition condition;
  condition.version = comparison.version;
  condition.value = reader.text(comparison.expected_bytes);
  espalier::Request& walk = call.new_walk(comparison.erase != 0 ? Op::erase : Op::put);
  walk.value = reader.rest();
  const auto kind = wire::condition_kind(comparison.kind);
  const bool erases_a_value =
      comparison.erase > 1 || (comparison.erase == 1 && !walk.value.empty());
  if (!reader.good() || !kind || erases_a_value || comparison.reserved != 0) {
    return call.fail({Code::invalid_argument, 0, comparison.kind});
  }
  condition.kind = *kind;
  return call.walk(nullptr, condition);
}

// --- add: a get, and a put on the condition that nothing came between ----------------------------

struct AddState {
  bool writing = false;  // the walk in hand is the put
  std::string expected;  // what the get found
  std::string sum;       // to be written
};

Next begin_add(Call& call) {
  call.state<AddState>().writing = false;
  call.new_walk(Op::get);
  return call.walk();
}

Next put_sum(Call& call, const Completion& found) {
  if (!found.ok) return call.fail(found.error);
  std::uint64_t sum = 0;
  if (found.found && found.value.size() != sizeof sum) {
    return call.fail({Code::invalid_argument, 0, static_cast<std::uint32_t>(found.value.size())});
  }
  if (found.found) std::memcpy(&sum, found.value.data(), sizeof sum);
  std::uint64_t amount = 0;
  std::memcpy(&amount, call.payload().data(), sizeof amount);
  sum += amount;  // wraps round, as counters do
  AddState& state = call.state<AddState>();
  state.expected.assign(found.value);
  state.sum.assign(reinterpret_cast<const char*>(&sum), sizeof sum);
  state.writing = true;
  Condition condition;
  const bool versions = call.map().keeps_versions();
  condition.kind = !found.found ? Kind::absent : versions ? Kind::version : Kind::value;
  condition.version = found.version;
  condition.value = state.expected;
  call.new_walk(Op::put).value = state.sum;
  return call.walk(nullptr, condition);
}

Next add(Call& call) {
  const Completion* const done = call.walked();
  if (done == nullptr) return begin_add(call);
  AddState& state = call.state<AddState>();
  if (!state.writing) return put_sum(call, *done);
  // Another write came between.
  if (!done->ok && done->error.code == Code::condition_failed) return begin_add(call);
  if (!done->ok) return call.fail(done->error);
  wire::ResponseHeader header{};
  header.version = done->version;
  header.flags = wire::kApplied;
  if (done->found) header.flags |= wire::kFound;
  return call.answer(header, {state.sum});
}

const Offload kModifyOffloads[] = {
    {{.id = wire::OffloadId::compare_and_set,
      .name = "compare_and_set",
      .format = "key; Comparison, expected value, new value",
      .summary = "writes or erases if the item is as expected; else condition_failed",
      .right = Right::write,
      .limits = {.map = true,
                 .payload_bytes_min = sizeof(wire::Comparison),
                 .payload_bytes_max = wire::kMessageBytesMax,
                 .keys = Keys::one},
      .at_device = wire::AtDevice::relayed,
      .changes = true},
     {.step = compare_and_set}},
    {{.id = wire::OffloadId::add,
      .name = "add",
      .format = "key; 8 bytes, little-endian",
      .summary = "adds to a value of 8 bytes, an absent one being 0; answers the sum",
      .right = Right::write,
      .limits = {.map = true, .payload_bytes_min = 8, .payload_bytes_max = 8, .keys = Keys::one},
      .at_device = wire::AtDevice::relayed,
      .changes = true},
     {.step = add}},
};

}  // namespace

std::span<const Offload> modify_offloads() { return kModifyOffloads; }

}  // namespace espalier::offload

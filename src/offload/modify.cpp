// SPDX-License-Identifier: Apache-2.0
// Offloads that change a value by what it is: compare-and-set and add.
#include <algorithm>

#include "offload/walk_answer.hpp"

namespace espalier::offload {
namespace {

using Kind = tree::WriteCondition::Kind;

void start_compare(Engine& engine, Request& request) {
  PayloadReader reader(request.payload());
  const auto comparison = reader.take<wire::Comparison>();
  tree::WriteCondition condition;
  condition.version = comparison.version;
  condition.value = reader.text(comparison.expected_bytes);
  request.walk = {};
  request.walk.op = comparison.erase != 0 ? Op::erase : Op::put;
  request.walk.key = request.key();
  request.walk.value = reader.rest();
  const bool known = comparison.kind <= static_cast<std::uint8_t>(Kind::version);
  const bool erases_a_value =
      comparison.erase > 1 || (comparison.erase == 1 && !request.walk.value.empty());
  if (!reader.good() || !known || erases_a_value || comparison.reserved != 0) {
    return engine.fail(request, {Code::invalid_argument, 0, comparison.kind});
  }
  condition.kind = static_cast<Kind>(comparison.kind);
  engine.walk(request, nullptr, condition);
}

// --- add: a get, and a put on the condition that nothing came between ----------------------------

void start_add(Engine& engine, Request& request) {
  request.begin_state();
  request.walk = {};
  request.walk.op = Op::get;
  request.walk.key = request.key();
  engine.walk(request);
}

void put_sum(Engine& engine, Request& request) {
  RequestState& state = *request.state;
  if (!state.going_on) return start_add(engine, request);
  tree::WriteCondition condition;
  const bool versions = request.map->core->options.versions;
  condition.kind = !state.outcome.found ? Kind::absent : versions ? Kind::version : Kind::value;
  condition.version = state.outcome.version;
  condition.value = state.from;
  request.walk.op = Op::put;
  request.walk.value = state.value;
  engine.walk(request, nullptr, condition);
}

void added(Engine& engine, Request& request, const Completion& done) {
  RequestState& state = *request.state;
  if (!state.going_on) {  // the get
    if (!done.ok) return engine.fail(request, done.error);
    std::uint64_t sum = 0;
    if (done.found) {
      if (done.value.size() != sizeof sum) {
        return engine.fail(
            request, {Code::invalid_argument, 0, static_cast<std::uint32_t>(done.value.size())});
      }
      std::memcpy(&sum, done.value.data(), sizeof sum);
    }
    state.from.assign(done.value);
    std::uint64_t amount = 0;
    std::memcpy(&amount, request.payload().data(), sizeof amount);
    sum += amount;  // wraps round, as counters do
    state.value.assign(reinterpret_cast<const char*>(&sum), sizeof sum);
    state.outcome = done;
    state.going_on = true;
    return engine.again(request);
  }
  if (!done.ok && done.error.code == Code::condition_failed) {  // somebody was quicker
    state.going_on = false;
    return engine.again(request);
  }
  if (!done.ok) return engine.fail(request, done.error);
  wire::ResponseHeader header{};
  header.version = done.version;
  header.flags = wire::kApplied;
  if (done.found) header.flags |= wire::kFound;
  engine.answer(request, header, {state.value});
}

const Offload kOffloads[] = {
    {.id = wire::OffloadId::compare_and_set,
     .name = "compare_and_set",
     .format = "key; Comparison, expected value, new value",
     .summary = "writes or erases if the item is as expected; else condition_failed",
     .limits = {.map = true,
                .payload_bytes_min = sizeof(wire::Comparison),
                .payload_bytes_max = wire::kMessageBytesMax},
     .start = start_compare,
     .walked = answer_walk},
    {.id = wire::OffloadId::add,
     .name = "add",
     .format = "key; 8 bytes, little-endian",
     .summary = "adds to a value of 8 bytes, an absent one being 0; answers the sum",
     .limits = {.map = true, .payload_bytes_min = 8, .payload_bytes_max = 8},
     .start = start_add,
     .walked = added,
     .resume = put_sum},
};

}  // namespace

std::span<const Offload> modify_offloads() { return kOffloads; }

}  // namespace espalier::offload

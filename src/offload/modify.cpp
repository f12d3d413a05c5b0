// SPDX-License-Identifier: Apache-2.0
// Offloads that change a value by what it is: compare-and-set and add.
#include <algorithm>

#include "offload/walk_answer.hpp"

namespace espalier::offload {
namespace {

using Kind = tree::WriteCondition::Kind;

void start_compare(Engine& engine, InFlight& r) {
  PayloadReader reader(r.payload());
  const auto comparison = reader.take<wire::Comparison>();
  tree::WriteCondition condition;
  condition.version = comparison.version;
  condition.value = reader.text(comparison.expected_bytes);
  r.request = {};
  r.request.op = comparison.erase != 0 ? Op::erase : Op::put;
  r.request.key = r.key();
  r.request.value = reader.rest();
  const bool known = comparison.kind <= static_cast<std::uint8_t>(Kind::version);
  const bool erases_a_value =
      comparison.erase > 1 || (comparison.erase == 1 && !r.request.value.empty());
  if (!reader.good() || !known || erases_a_value || comparison.reserved != 0) {
    return engine.fail(r, {Code::invalid_argument, 0, comparison.kind});
  }
  condition.kind = static_cast<Kind>(comparison.kind);
  engine.walk(r, nullptr, condition);
}

// --- add: a get, and a put on the condition that nothing came between ----------------------------

void start_add(Engine& engine, InFlight& r) {
  r.begin_steps();
  r.request = {};
  r.request.op = Op::get;
  r.request.key = r.key();
  engine.walk(r);
}

void put_sum(Engine& engine, InFlight& r) {
  Steps& steps = *r.steps;
  if (!steps.going_on) return start_add(engine, r);
  tree::WriteCondition condition;
  const bool versions = r.map->core->options.versions;
  condition.kind = !steps.outcome.found ? Kind::absent : versions ? Kind::version : Kind::value;
  condition.version = steps.outcome.version;
  condition.value = steps.from;
  r.request.op = Op::put;
  r.request.value = steps.value;
  engine.walk(r, nullptr, condition);
}

void added(Engine& engine, InFlight& r, const Completion& done) {
  Steps& steps = *r.steps;
  if (!steps.going_on) {  // the get
    if (!done.ok) return engine.fail(r, done.error);
    std::uint64_t sum = 0;
    if (done.found) {
      if (done.value.size() != sizeof sum) {
        return engine.fail(
            r, {Code::invalid_argument, 0, static_cast<std::uint32_t>(done.value.size())});
      }
      std::memcpy(&sum, done.value.data(), sizeof sum);
    }
    steps.from.assign(done.value);
    std::uint64_t amount = 0;
    std::memcpy(&amount, r.payload().data(), sizeof amount);
    sum += amount;  // wraps round, as counters do
    steps.value.assign(reinterpret_cast<const char*>(&sum), sizeof sum);
    steps.outcome = done;
    steps.going_on = true;
    return engine.again(r);
  }
  if (!done.ok && done.error.code == Code::condition_failed) {  // somebody was quicker
    steps.going_on = false;
    return engine.again(r);
  }
  if (!done.ok) return engine.fail(r, done.error);
  wire::ResponseHeader header{};
  header.version = done.version;
  header.flags = wire::kApplied;
  if (done.found) header.flags |= wire::kFound;
  engine.answer(r, header, {steps.value});
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

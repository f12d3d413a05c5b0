// SPDX-License-Identifier: Apache-2.0
// Offloads on sequencers: making and opening them, taking numbers, seals and epochs, and the word
// for sessions that add to it themselves [DPU §6].
#include <memory>
#include <utility>

#include "base/bytes.hpp"
#include "offload/connection.hpp"
#include "offload/object_calls.hpp"
#include "offload/payload_reader.hpp"
#include "offload/sequencer_host.hpp"
#include "offload/take_batch.hpp"
#include "sequencer/sequencer.hpp"

namespace espalier::offload {
namespace {

using sequencer::Sequencer;

std::shared_ptr<Sequencer> find(Call& call) {
  return call.services().catalog().find<Sequencer>(call.map_number());
}

Next fail_unknown(Call& call) { return call.fail({Code::not_found, 0, call.map_number()}); }

// An epoch that no sequencer can have is a mistake, and not one that has ended.
bool is_epoch(std::uint32_t epoch) { return epoch <= wire::kSequencerEpochMax; }

Next fail_epoch(Call& call, std::uint32_t epoch) {
  return call.fail({Code::invalid_argument, 0, epoch}, "no sequencer has such an epoch");
}

Next sequencer_create(Call& call) {
  const auto first = PayloadReader(call.payload()).take<std::uint64_t>();
  const auto made = sequencer::create_sequencer(call.services().catalog(), call.key(), first);
  if (!made) return call.fail(made.error());
  return answer_object(call, (*made)->id(), **made);
}

Next sequencer_open(Call& call) {
  const auto opened = call.services().catalog().open<Sequencer>(call.key());
  if (!opened) return call.fail(opened.error());
  return answer_object(call, (*opened)->id(), **opened);
}

/// A request that has joined a batch.
struct TakeState {
  std::shared_ptr<TakeBatch> batch;
  std::uint32_t offset = 0;
};

Next begin_take(Call& call) {
  const auto epoch = PayloadReader(call.payload()).take<std::uint32_t>();
  const std::uint32_t count = call.argument();
  if (count == 0) return call.fail({Code::invalid_argument, 0, 0}, "no numbers are asked for");
  if (!is_epoch(epoch)) return fail_epoch(call, epoch);
  TakeBatches& batches = call.take_batches();
  auto batch = batches.find(call.map_number(), epoch, count);
  if (batch == nullptr) {
    auto from = find(call);
    if (from == nullptr) return fail_unknown(call);
    batch = batches.begin(std::move(from), epoch);
  }
  TakeState& state = call.new_state<TakeState>();
  state.offset = batch->join(count);
  state.batch = std::move(batch);
  return call.again();
}

Next sequencer_take(Call& call) {
  if (!call.has_state<TakeState>()) return begin_take(call);
  const TakeState& state = call.state<TakeState>();
  const auto taken = state.batch->part(state.offset, call.argument());
  if (!taken) return call.fail(taken.error());
  wire::ResponseHeader header{};
  header.version = taken->first;
  header.read_version = taken->epoch;
  return call.answer(header);
}

Next answer_facts(Call& call, const Result<wire::SequencerFacts>& facts) {
  if (!facts) return call.fail(facts.error());
  return call.answer({}, {base::bytes_of(*facts)});
}

Next sequencer_seal(Call& call) {
  const auto epoch = PayloadReader(call.payload()).take<std::uint32_t>();
  if (!is_epoch(epoch)) return fail_epoch(call, epoch);
  const auto of = find(call);
  if (of == nullptr) return fail_unknown(call);
  return answer_facts(call, of->seal(epoch));
}

Next sequencer_advance(Call& call) {
  const auto advance = PayloadReader(call.payload()).take<wire::SequencerAdvance>();
  if (!is_epoch(advance.epoch)) return fail_epoch(call, advance.epoch);
  if (advance.reserved != 0) return call.fail({Code::invalid_argument, 0, advance.reserved});
  const auto of = find(call);
  if (of == nullptr) return fail_unknown(call);
  const auto facts = of->advance(advance.epoch, advance.at_least);
  if (!facts && facts.error() == Error{Code::invalid_argument, 0, 1}) {
    return call.fail(facts.error(),
                     "a client wrote over the word, so that nobody knows which numbers were given: "
                     "name one above which all are free");
  }
  return answer_facts(call, facts);
}

Next one_sided_sequencer(Call& call) {
  SequencerHost* const host = call.connection().sequencers.get();
  if (host == nullptr) {
    return call.fail({Code::unsupported, 0, 0},
                     "this connection's transport has no atomics that the node's processor keeps "
                     "to, or the node offers no memory: ask for numbers by rpc");
  }
  const auto of = find(call);
  if (of == nullptr) return fail_unknown(call);
  const auto grant = host->open(*of);
  if (!grant) return call.fail(grant.error());
  return call.answer({}, {base::bytes_of(*grant)});
}

constexpr Limits kEpoch{.payload_bytes_min = 4, .payload_bytes_max = 4};

const Offload kSequencerOffloads[] = {
    {.id = wire::OffloadId::sequencer_create,
     .name = "sequencer_create",
     .format = "key: the sequencer's name, 1 to 255 bytes; 8 bytes: its first number",
     .summary = "makes a sequencer, in epoch 1; answers its number and SequencerFacts",
     .right = Right::admin,
     .limits = {.key_bytes_min = 1,
                .key_bytes_max = kObjectName.key_bytes_max,
                .payload_bytes_min = 8,
                .payload_bytes_max = 8},
     .object = Names::by_name,
     .step = sequencer_create},
    {.id = wire::OffloadId::sequencer_open,
     .name = "sequencer_open",
     .format = "key: the sequencer's name",
     .summary = "answers a sequencer's number and SequencerFacts",
     .right = Right::read,
     .limits = kObjectName,
     .object = Names::by_name,
     .step = sequencer_open},
    {.id = wire::OffloadId::sequencer_take,
     .name = "sequencer_take",
     .format = "map: the sequencer's id; argument: how many numbers; 4 bytes: the epoch, 0 for any",
     .summary = "answers the first of so many numbers in a row that nobody else gets, and their "
                "epoch; or sealed",
     .right = Right::write,
     .limits = kEpoch,
     .object = Names::by_id,
     .step = sequencer_take},
    {.id = wire::OffloadId::sequencer_seal,
     .name = "sequencer_seal",
     .format = "map: the sequencer's id; 4 bytes: the epoch, 0 for any",
     .summary = "ends the epoch: nobody is given a number of it from now on; answers "
                "SequencerFacts",
     .right = Right::admin,
     .limits = kEpoch,
     .object = Names::by_id,
     .step = sequencer_seal},
    {.id = wire::OffloadId::sequencer_advance,
     .name = "sequencer_advance",
     .format = "map: the sequencer's id; SequencerAdvance",
     .summary = "ends the epoch and begins the next, above all numbers that were given; answers "
                "SequencerFacts",
     .right = Right::admin,
     .limits = {.payload_bytes_min = sizeof(wire::SequencerAdvance),
                .payload_bytes_max = sizeof(wire::SequencerAdvance)},
     .object = Names::by_id,
     .step = sequencer_advance},
    {.id = wire::OffloadId::one_sided_sequencer,
     .name = "one_sided_sequencer",
     .format = "map: the sequencer's id",
     .summary = "lets this session add to the word of the present epoch by FETCH_ADD; answers a "
                "SequencerGrant",
     .right = Right::write,
     .limits = {},
     .object = Names::by_id,
     .step = one_sided_sequencer},
};

}  // namespace

std::span<const Offload> sequencer_offloads() { return kSequencerOffloads; }

}  // namespace espalier::offload

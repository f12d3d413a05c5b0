// SPDX-License-Identifier: Apache-2.0
// Offloads on sequencers: making and opening them, taking numbers, seals and epochs, and the word
// for sessions that add to it themselves [DPU §6].
#include <memory>
#include <utility>

#include "offload/connection.hpp"
#include "offload/kinds.hpp"
#include "offload/sequencer_host.hpp"
#include "offload/take_batch.hpp"
#include "offload/typed_call.hpp"
#include "sequencer/calls.hpp"
#include "sequencer/sequencer.hpp"

namespace espalier::offload {
namespace {

using sequencer::Sequencer;

std::shared_ptr<Sequencer> find(Call& call) {
  return call.services().catalog().find<Sequencer>(call.map_number());
}

Next fail_unknown(Call& call) { return call.fail({Code::not_found, 0, call.map_number()}); }

Next answer_opened(Call& call, const Result<std::shared_ptr<Sequencer>>& opened) {
  if (!opened) return call.fail(opened.error());
  return answer(call, sequencer_calls::Opened{(*opened)->id(), (*opened)->facts()});
}

Next create(Call& call, const sequencer_calls::Create& asked) {
  return answer_opened(
      call, sequencer::create_sequencer(call.services().catalog(), asked.name, asked.first));
}

Next open(Call& call, const sequencer_calls::Open& asked) {
  return answer_opened(call, call.services().catalog().open<Sequencer>(asked.name));
}

/// A request that has joined a batch.
struct TakeState {
  std::shared_ptr<TakeBatch> batch;
  std::uint32_t offset = 0;
};

Next begin_take(Call& call, const sequencer_calls::Take& asked) {
  TakeBatches& batches = call.scheduler_part<TakeBatches>();
  auto batch = batches.find(asked.sequencer, asked.epoch, asked.count);
  if (batch == nullptr) {
    auto from = find(call);
    if (from == nullptr) return fail_unknown(call);
    batch = batches.begin(std::move(from), asked.epoch);
  }
  TakeState& state = call.new_state<TakeState>();
  state.offset = batch->join(asked.count);
  state.batch = std::move(batch);
  return call.again();
}

Next take(Call& call, const sequencer_calls::Take& asked) {
  if (!call.has_state<TakeState>()) return begin_take(call, asked);
  const TakeState& state = call.state<TakeState>();
  const auto taken = state.batch->part(state.offset, asked.count);
  if (!taken) return call.fail(taken.error());
  return answer(call, sequencer_calls::Taken{taken->first, taken->epoch});
}

Next answer_facts(Call& call, const Result<wire::SequencerFacts>& facts) {
  if (!facts) return call.fail(facts.error());
  return answer(call, sequencer_calls::Facts{*facts});
}

Next seal(Call& call, const sequencer_calls::Seal& asked) {
  const auto of = find(call);
  if (of == nullptr) return fail_unknown(call);
  return answer_facts(call, of->seal(asked.epoch));
}

Next advance(Call& call, const sequencer_calls::Advance& asked) {
  const auto of = find(call);
  if (of == nullptr) return fail_unknown(call);
  const auto facts = of->advance(asked.to.epoch, asked.to.at_least);
  if (!facts && facts.error() == Error{Code::invalid_argument, 0, 1}) {
    return call.fail(facts.error(),
                     "a client wrote over the word, so that nobody knows which numbers were given: "
                     "name one above which all are free");
  }
  return answer_facts(call, facts);
}

Next open_word(Call& call, const sequencer_calls::OpenWord&) {
  SequencerHost* const host = SequencerHost::of(call.connection());
  if (host == nullptr) {
    return call.fail({Code::unsupported, 0, 0},
                     "this connection's transport has no atomics that the node's processor keeps "
                     "to, or the node offers no memory: ask for numbers by rpc");
  }
  const auto of = find(call);
  if (of == nullptr) return fail_unknown(call);
  const auto grant = host->open(*of);
  if (!grant) return call.fail(grant.error());
  return answer(call, sequencer_calls::Granted{*grant});
}

const Offload kSequencerOffloads[] = {
    serve<sequencer_calls::Create, create>(),   serve<sequencer_calls::Open, open>(),
    serve<sequencer_calls::Take, take>(),       serve<sequencer_calls::Seal, seal>(),
    serve<sequencer_calls::Advance, advance>(), serve<sequencer_calls::OpenWord, open_word>(),
};

}  // namespace

std::span<const Offload> sequencer_offloads() { return kSequencerOffloads; }

}  // namespace espalier::offload

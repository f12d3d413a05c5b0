// SPDX-License-Identifier: Apache-2.0
// Offloads on sequencers: making and opening them, taking numbers, seals and epochs, and the word
// for sessions that add to it themselves [DPU §6].
#include <memory>
#include <utility>

#include "engine/connection.hpp"
#include "engine/object_call.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "kinds/sequencer/execute.hpp"
#include "kinds/sequencer/offload/sequencer_host.hpp"
#include "kinds/sequencer/offload/sequencer_offloads.hpp"
#include "kinds/sequencer/offload/take_batch.hpp"
#include "kinds/sequencer/sequencer.hpp"

namespace espalier::offload {
namespace {

using sequencer::Sequencer;

std::shared_ptr<Sequencer> find(Call& call) {
  return call.services().catalog().find<Sequencer>(call.map_number());
}

Next fail_unknown(Call& call) { return call.fail({Code::not_found, 0, call.map_number()}); }

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
    serve_opening<sequencer_calls::Create>(),
    serve_opening<sequencer_calls::Open>(),
    serve<sequencer_calls::Take, take>(),
    serve_on<Sequencer, sequencer_calls::Seal>(),
    serve_on<Sequencer, sequencer_calls::Advance>(),
    serve<sequencer_calls::OpenWord, open_word>(),
};

}  // namespace

std::span<const Offload> sequencer_offloads() { return kSequencerOffloads; }

}  // namespace espalier::offload

// SPDX-License-Identifier: Apache-2.0
// Sequencers: counters that hand out numbers, each once [DPU §6.2].
#include "offload/kinds.hpp"
#include "offload/sequencer_services.hpp"
#include "offload/typed_call.hpp"
#include "sequencer/calls.hpp"

namespace espalier::offload {
namespace {

Next count(Call& call, const sequencer_calls::Count& asked) {
  const auto first = call.services().part<SequencerServices>().counters.take(
      asked.name, asked.count, call.services().catalog().redo());
  if (!first) return call.fail(first.error());
  return answer(call, sequencer_calls::Counted{*first});
}

const Offload kCounterOffloads[] = {serve<sequencer_calls::Count, count>()};

}  // namespace

std::span<const Offload> counter_offloads() { return kCounterOffloads; }

}  // namespace espalier::offload

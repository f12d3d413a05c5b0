// SPDX-License-Identifier: Apache-2.0
// Sequencers: counters that hand out numbers, each once [DPU §6.2].
#include "kinds/sequencer/counters.hpp"
#include "catalog/catalog.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "kinds/sequencer/calls.hpp"
#include "kinds/sequencer/offload/sequencer_offloads.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {
namespace {

Next count(Call& call, const sequencer_calls::Count& asked) {
  const auto first = call.services().store.parts.of<sequencer::Counters>().take(
      asked.name, asked.count, call.services().catalog().redo());
  if (!first) return call.fail(first.error());
  return answer(call, sequencer_calls::Counted{*first});
}

const Offload kCounterOffloads[] = {serve<sequencer_calls::Count, count>()};

}  // namespace

std::span<const Offload> counter_offloads() { return kCounterOffloads; }

}  // namespace espalier::offload

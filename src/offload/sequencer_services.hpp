// SPDX-License-Identifier: Apache-2.0
// What a node keeps for all its sequencers. Thread: any.
#pragma once

#include "offload/node_parts.hpp"
#include "sequencer/counters.hpp"

namespace espalier::offload {

struct SequencerServices final : NodePart {
  sequencer::Counters counters;  ///< those without an object of their own
};

}  // namespace espalier::offload

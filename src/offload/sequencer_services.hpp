// SPDX-License-Identifier: Apache-2.0
// What a node keeps for all its sequencers. Thread: any.
#pragma once

#include "base/sequencers.hpp"
#include "offload/node_parts.hpp"

namespace espalier::offload {

struct SequencerServices final : NodePart {
  base::Sequencers counters;  ///< those without an object of their own
};

}  // namespace espalier::offload

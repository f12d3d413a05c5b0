// SPDX-License-Identifier: Apache-2.0
// What a node keeps for all its maps. Thread: any.
#pragma once

#include "offload/index_reads.hpp"
#include "offload/lane_queue.hpp"
#include "offload/node_parts.hpp"

namespace espalier::offload {

struct MapServices final : NodePart {
  IndexReadCounts index_reads;
  LaneRounds lane_rounds;
};

}  // namespace espalier::offload

// SPDX-License-Identifier: Apache-2.0
// Node-wide state of maps. Thread: any.
#pragma once

#include "engine/node_parts.hpp"
#include "kinds/map/offload/index_reads.hpp"
#include "kinds/map/offload/lane_queue.hpp"

namespace espalier::offload {

struct MapServices final : NodePart {
  IndexReadCounts index_reads;
  alignas(64) LaneRounds lane_rounds;  // not on the cache line of the counts
};

}  // namespace espalier::offload

// SPDX-License-Identifier: Apache-2.0
// Statistics of one map.
#pragma once

#include "espalier/types.hpp"

namespace espalier::tree {

class MapCore;

/// Reads the statistics without stopping writers: each is exact, but they are not of one instant.
/// Cost: counters, and the reclaimer's lock. Thread: any.
MapStats stats_of(const MapCore& core);

}  // namespace espalier::tree

// SPDX-License-Identifier: Apache-2.0
// The numbers of one map.
#pragma once

#include "espalier/types.hpp"

namespace espalier::tree {

class MapCore;

/// Reads them without stopping anything: each is right, they are not of one instant.
/// Cost: counters, and the reclaimer's lock. Thread: any.
MapStats stats_of(const MapCore& core);

}  // namespace espalier::tree

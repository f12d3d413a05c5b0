// SPDX-License-Identifier: Apache-2.0
// The numbers of one map.
#pragma once

#include "tree/write/map_core.hpp"

namespace espalier::tree {

/// Reads them without stopping anything: each is right, they are not of one instant.
/// `slot`: exposes an epoch while the root is looked at.
/// Cost: counters, and the reclaimer's lock. Thread: the slot's.
/// Requires: the slot exposes nothing.
MapStats stats_of(const MapCore& core, base::EpochSlot& slot);

}  // namespace espalier::tree

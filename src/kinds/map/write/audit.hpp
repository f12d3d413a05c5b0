// SPDX-License-Identifier: Apache-2.0
// Checks of the whole structure.
#pragma once

#include <string>
#include <vector>

#include "kinds/map/write/map_core.hpp"

namespace espalier::tree {

/// Reports violated invariants of a map, one sentence each; empty if there are none. Checks order,
/// fences, fill, versions, reachability, predecessors, logs and their hints, LIDs, counters, and
/// that the map's buffers do not overlap; for the only map of a store, also that buffers in use +
/// free + waiting = all. Stops after `most` complaints. Corrupt bytes are reported, never followed.
/// Requires: no thread writes to the map meanwhile.
std::vector<std::string> audit(const MapCore& map, std::size_t most = 20);

/// The same for all maps of a store, and: buffers in use + free + waiting = all.
/// Requires: no thread writes to any of the maps meanwhile, or creates or drops one.
std::vector<std::string> audit_store(const StoreCore& store, std::size_t most = 20);

/// Estimates how many items lie below `key`, between 0 and `items`. Cost: one descent.
/// Requires: an exposed epoch.
double estimate_rank(const MapCore& map, const SearchKey& key);

}  // namespace espalier::tree

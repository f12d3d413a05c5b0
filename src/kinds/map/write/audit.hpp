// SPDX-License-Identifier: Apache-2.0
// Checks of the whole structure.
#pragma once

#include <string>
#include <vector>

#include "kinds/map/write/map_core.hpp"

namespace espalier::tree {

/// What is wrong with a map, one sentence each; empty if all is well. Checks order, fences, fill,
/// versions, reachability, predecessors, logs and their hints, LIDs, counters, and that the map's
/// buffers lie apart; where it is the only map of its store, also that buffers in use + free +
/// waiting = all. Stops after `most` complaints. Bytes that lie are complained about, not believed.
/// Requires: nobody writes to the map meanwhile.
std::vector<std::string> audit(const MapCore& map, std::size_t most = 20);

/// The same for all maps of a store, and: buffers in use + free + waiting = all.
/// Requires: nobody writes to any of the maps meanwhile, and none is made or dropped.
std::vector<std::string> audit_store(const StoreCore& store, std::size_t most = 20);

/// A guess at how many items lie below `key`, between 0 and `items`. Cost: one descent.
/// Requires: an exposed epoch.
double estimate_rank(const MapCore& map, const SearchKey& key);

}  // namespace espalier::tree

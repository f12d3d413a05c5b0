// SPDX-License-Identifier: Apache-2.0
// Checks of the whole structure.
#pragma once

#include <string>
#include <vector>

#include "tree/map_core.hpp"

namespace espalier::tree {

/// What is wrong with a map, one sentence each; empty if all is well. Checks order, fences, fill,
/// versions, reachability, predecessors, logs and their hints, LIDs, counters, and that every buffer of
/// the map is in use or waiting. Stops after `most` complaints.
/// Requires: nobody writes to the map meanwhile.
std::vector<std::string> audit(const MapCore& map, std::size_t most = 20);

/// A guess at how many items lie below `key`, between 0 and `items`. Cost: one descent.
/// Requires: an exposed epoch.
double estimate_rank(const MapCore& map, const SearchKey& key);

}  // namespace espalier::tree

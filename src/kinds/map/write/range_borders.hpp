// SPDX-License-Identifier: Apache-2.0
// Splits a range into parts for concurrent walks: at the separators of the uppermost level of the
// tree that has enough of them [Fat-B+Tree §IV-C].
//
// Borders are estimates: the parts have the same items in total wherever the range is cut.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::tree {

class MapCore;
struct ThreadContext;

/// At most parts - 1 ascending keys between `low` and `high` that split [low, high) into parts of
/// about equally many nodes; fewer if the range has fewer leaves, none if it is empty or a bound is
/// longer than a key can be. Empty bounds are none.
/// Cost: at most `parts` nodes of each level, with together at most 16 times as many children: if
/// there are more, they are sampled evenly. Requires: no other use of the worker's epoch. Errors:
/// std::bad_alloc.
[[nodiscard]] std::vector<std::string> range_borders(ThreadContext& context, const MapCore& map,
                                                     std::string_view low, std::string_view high,
                                                     std::uint32_t parts);

}  // namespace espalier::tree

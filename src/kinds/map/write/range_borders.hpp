// SPDX-License-Identifier: Apache-2.0
// Where a range may be cut into parts that are walked at the same time: at the separators of the
// uppermost level of the tree that has enough of them [Fat-B+Tree §IV-C].
//
// They are guesses: whoever walks the parts gets the same items wherever the range is cut.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::tree {

class MapCore;
struct ThreadContext;

/// Keys between `low` and `high`, ascending, at most parts - 1, that cut [low, high) into parts of
/// about as many nodes each; fewer where the range has fewer leaves, none where it is empty or a
/// bound is longer than a key can be. Empty bounds are none.
/// Cost: at most `parts` nodes of each level, and of these together 16 times as many children at
/// the most: where there are more, some are left out, evenly. Requires: nothing else uses the
/// worker's epoch. Errors: std::bad_alloc.
[[nodiscard]] std::vector<std::string> range_borders(ThreadContext& context, const MapCore& map,
                                                     std::string_view low, std::string_view high,
                                                     std::uint32_t parts);

}  // namespace espalier::tree

// SPDX-License-Identifier: Apache-2.0
// Which nodes below the fat root a switch holds, layer by layer: of the first layer those children
// of the fat root that were passed most often, of each further layer those among the children of
// the layer above. A node counts only if the way to it is in the tables too. [Fat-B+Tree §III-C]
//
// Thread: any.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "dataplane/fat_root.hpp"
#include "dataplane/tree_image.hpp"

namespace espalier::dataplane {

/// The nodes of each layer, at most as many as its budget, in the order of their keys. Leaves are
/// in none, for what leads to them says all that a switch can know of them. A layer without nodes
/// is left out, and those below. Cost: linear in the children of what is chosen.
[[nodiscard]] std::vector<std::vector<NodeNumber>> choose_node_sets(
    const TreeImage& tree, const FatRoot& root, std::span<const std::size_t> budgets);

}  // namespace espalier::dataplane

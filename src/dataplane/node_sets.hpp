// SPDX-License-Identifier: Apache-2.0
// Chooses the nodes below the fat root that a switch holds, layer by layer: of the first layer the
// children of the fat root with the most accesses, of each further layer those among the children
// of the layer above. A node counts only if the path to it is in the tables too.
// [Fat-B+Tree §III-C]
//
// Thread: any.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "dataplane/fat_root.hpp"
#include "dataplane/tree_image.hpp"

namespace espalier::dataplane {

/// The nodes of each layer, in the order of their keys.
using Layers = std::vector<std::vector<NodeNumber>>;

/// A layer of several trees: those of one group have a budget together, for their nodes lie in one
/// switch.
struct LayerBudget {
  static constexpr std::size_t kNoGroup = ~std::size_t{0};
  std::vector<std::size_t> group_of;  // of each tree; kNoGroup: it ends above
  std::vector<std::size_t> nodes;     // of each group
};

/// Of each tree its own layers, with at most as many nodes in each as its budget. Leaves are in
/// none, for what leads to them says all that a switch can know of them. A layer without nodes is
/// left out, and those below. Requires: a root and a group for each tree. Cost: linear in the
/// children of what is chosen.
[[nodiscard]] std::vector<Layers> choose_node_sets(std::span<const TreeImage> trees,
                                                   std::span<const FatRoot> roots,
                                                   std::span<const LayerBudget> budgets);

}  // namespace espalier::dataplane

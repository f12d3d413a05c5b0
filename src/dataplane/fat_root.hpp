// SPDX-License-Identifier: Apache-2.0
// Chooses the nodes of a tree that become one node of many ranges, the fat root: from the root on,
// always the node with the most accesses, as long as its ranges fit. Each node merged saves a READ
// for every key that passes it. [Fat-B+Tree §III-B]
//
// A node that does not fit is skipped, and less hot ones that do fit are still merged. Where nodes
// are of different widths a narrow one may be worth more than a hotter wide one; so the choice is
// repeated by accesses per added range, and the better of the two is used.
//
// Several trees, of the nodes that a map lies on, may share the ranges, as if they hung under one
// node above all roots, which is merged first. No number leads from one tree to another.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/tree_image.hpp"

namespace espalier::dataplane {

/// Numbers from `low` on, up to the next range, lead to this node.
struct FatRange {
  std::uint64_t low = 0;
  NodeNumber node = 0;
  /// The node was merged, and these numbers do not determine which of its children is meant.
  bool here = false;
  friend bool operator==(const FatRange&, const FatRange&) = default;
};

struct FatRoot {
  std::vector<FatRange> ranges;    // ascending, the first at 0
  std::vector<NodeNumber> merged;  // in the order in which they were
};

/// Merges nodes into at most `ranges_max` ranges. Requires: ranges_max >= 1, a tree with a root.
/// Cost: n log n in the children of the nodes that are merged.
[[nodiscard]] FatRoot make_fat_root(const TreeImage& tree, std::size_t ranges_max);
/// The same of several trees together, of each its own ranges. Requires: a range for each at least.
[[nodiscard]] std::vector<FatRoot> make_fat_roots(std::span<const TreeImage> trees,
                                                  std::size_t ranges_max);

}  // namespace espalier::dataplane

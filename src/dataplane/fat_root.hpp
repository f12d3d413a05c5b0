// SPDX-License-Identifier: Apache-2.0
// Which nodes of a tree become one node of many ranges, the fat root: from the root on, always the
// node that was passed most often, as long as its ranges have room. Each node merged saves a READ
// for every key that passes it. [Fat-B+Tree §III-B]
//
// A node that does not fit is left where it is, and less hot ones that do fit still go in. Where
// nodes are of different widths a narrow one may be worth more than a hotter wide one; so the
// choice is made once more by accesses for each range that a node adds, and the better one counts.
//
// Several trees, of the nodes that a map lies on, may share the ranges: then it is as if they hung
// under one node above all roots, which is merged first. No number leads from one to another.
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
  /// The node was merged, and these numbers do not tell which of its children is meant.
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

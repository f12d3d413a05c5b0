// SPDX-License-Identifier: Apache-2.0
// For tests: trees of any shape, and what a lookup in one must find.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "dataplane/testing/even_tree.hpp"
#include "dataplane/tree_image.hpp"

namespace espalier::dataplane {

struct TreeShape {
  std::size_t levels = 3;             // of nodes that have children
  std::size_t children_max = 6;       // of a node, at least 1
  double here = 0.0;                  // how often a child is kHere
  std::uint64_t accesses_max = 1000;  // of a leaf
};

/// A tree by chance: separators dense in places and at the ends of the key space, addresses all
/// different, a node passed as often as what lies below it.
[[nodiscard]] TreeImage random_tree(base::Random& random, const TreeShape& shape);

/// The nodes that a key passes, root first, until a leaf or a kHere.
[[nodiscard]] std::vector<NodeNumber> path_of(const TreeImage& tree, std::uint64_t key);

/// Keys at which lookups change: 0, the largest, separators and their neighbours; of many
/// separators so many by chance.
[[nodiscard]] std::vector<std::uint64_t> border_keys(const TreeImage& tree, base::Random& random,
                                                     std::size_t separators_max = 200);

/// By how many READs fewer a merge of these nodes serves all accesses: the sum of theirs.
[[nodiscard]] std::uint64_t saved_reads(const TreeImage& tree,
                                        const std::vector<NodeNumber>& merged);

/// The most that any choice of nodes can save with so many ranges, by dynamic programming over the
/// tree. Cost: nodes * ranges_max^2.
[[nodiscard]] std::uint64_t most_saved_reads(const TreeImage& tree, std::size_t ranges_max);

}  // namespace espalier::dataplane

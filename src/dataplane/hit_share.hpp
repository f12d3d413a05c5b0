// SPDX-License-Identifier: Apache-2.0
// How good tables are for a tree that is passed as its counts say.
//
// Thread: any.
#pragma once

#include "dataplane/index_tables.hpp"
#include "dataplane/tree_image.hpp"

namespace espalier::dataplane {

/// The share of accesses to leaves that the tables send directly to the leaf, 0 to 1.
/// Cost: a lookup for each leaf.
[[nodiscard]] double hit_share(const TreeImage& tree, const IndexTables& tables);
/// How many nodes are still read, on average, behind the one that the tables send to: 0 where that
/// is the leaf each time; where it is not on the way, the way from the root, and one more.
/// Cost: as hit_share().
[[nodiscard]] double reads_left(const TreeImage& tree, const IndexTables& tables);

}  // namespace espalier::dataplane

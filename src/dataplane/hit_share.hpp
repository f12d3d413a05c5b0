// SPDX-License-Identifier: Apache-2.0
// How good tables are for a tree that is passed as its counts say.
//
// Thread: any.
#pragma once

#include "dataplane/index_tables.hpp"
#include "dataplane/tree_image.hpp"

namespace espalier::dataplane {

/// The share of what passes leaves that the tables send to its leaf at once, 0 to 1.
/// Cost: a lookup for each leaf.
[[nodiscard]] double hit_share(const TreeImage& tree, const IndexTables& tables);

}  // namespace espalier::dataplane

// SPDX-License-Identifier: Apache-2.0
// Updates tables for a tree that has changed its shape: the tables keep their shape, and each entry
// names the node that covers all of its numbers. So where a few nodes were split, entries can be
// updated one by one; a split costs a READ more, until the tables are compiled anew.
//
// Thread: any.
#pragma once

#include "dataplane/index_tables.hpp"
#include "dataplane/tree_image.hpp"

namespace espalier::dataplane {

/// Each entry names the lowest node of the tree on whose way all numbers lie that come to it; an
/// entry that no number comes to stays. Requires: tables that check() accepts, with a fat root, and
/// that nothing follows. Cost: for each entry a descent of the tree.
[[nodiscard]] IndexTables retargeted(IndexTables tables, const TreeImage& tree);

}  // namespace espalier::dataplane

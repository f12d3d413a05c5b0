// SPDX-License-Identifier: Apache-2.0
// Tables of a tree that has another shape by now: their own shape stays, and each entry names the
// node that has all of its numbers. So entries can be told one by one where a few nodes were split,
// and what was split costs a READ more, until the tables are compiled anew.
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

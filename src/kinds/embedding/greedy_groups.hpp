// SPDX-License-Identifier: Apache-2.0
// Forms groups for a table from lists of queried ids: own greedy communities in place of MERCI's
// partition, and its clustering in each of them [MERCI §4].
//
// In a community each item begins as a group of its own. The algorithm merges the two groups with
// the greatest benefit for each additional row of sums: the benefit is the weight of the lists that
// have items of both, because each of these reads one row less. The order of a community's merges
// does not depend on how many are wanted, so each community is merged to its end, and of all merges
// the best are taken as long as there is room for their sums.
//
// Thread: one at a time.
#pragma once

#include <cstdint>

#include "kinds/embedding/communities.hpp"
#include "kinds/embedding/query_lists.hpp"

namespace espalier::embedding {

struct GroupingOptions {
  std::uint32_t group_rows_max = RowGroups::kRowsMax;  // 2 to 8
  std::uint64_t sums_max = 0;                          // limit on rows of sums
};

/// Deterministic: the same lists and options make the same groups. Groups of more rows come first.
/// Cost: for each community the square of its items, and its lists; memory for some million parts
/// of lists at a time. Requires: ids are below `items`; `communities` is of these lists, or of
/// others with the same items, and has at most 128 items in each.
[[nodiscard]] GroupLists greedy_groups(const QueryLists& lists, const Communities& communities,
                                       const GroupingOptions& options,
                                       const WorkProgress& progress = {});

}  // namespace espalier::embedding

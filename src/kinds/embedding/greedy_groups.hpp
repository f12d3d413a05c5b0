// SPDX-License-Identifier: Apache-2.0
// Groups for a table, out of lists that queries asked for: own greedy communities in place of
// MERCI's partition, and its clustering in each of them [MERCI §4].
//
// In a community each item begins alone. The two groups are merged whose benefit for each row of
// sums that the merged one keeps more is the greatest: the benefit is the weight of the lists that
// have items of both, for each of them reads a row less. A community's merges come in the same
// order however many are wanted, so each is carried to its end, and of all communities' merges the
// best are taken as long as there is room for their sums.
//
// Thread: one at a time.
#pragma once

#include <cstdint>

#include "kinds/embedding/communities.hpp"
#include "kinds/embedding/query_lists.hpp"

namespace espalier::embedding {

struct GroupingOptions {
  std::uint32_t group_rows_max = RowGroups::kRowsMax;  // 2 to 8
  std::uint64_t sums_max = 0;                          // rows of sums that there is room for
};

/// The same lists and options make the same groups. Groups of more rows come first.
/// Cost: for each community the square of its items, and its lists; memory for some million parts
/// of lists at a time. Requires: ids are below `items`; `communities` is of these lists, or of
/// others with the same items, and has at most 128 items in each.
[[nodiscard]] GroupLists greedy_groups(const QueryLists& lists, const Communities& communities,
                                       const GroupingOptions& options,
                                       const WorkProgress& progress = {});

}  // namespace espalier::embedding

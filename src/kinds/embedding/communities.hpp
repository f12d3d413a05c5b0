// SPDX-License-Identifier: Apache-2.0
// Finds communities: at most 128 items that often occur in the same lists, as the first step of
// grouping. Instead of MERCI's partition by PaToH, a greedy streaming algorithm:
//
//   place     lists by falling weight: items without a community yet go to the one that most of
//             the list's items are in, while there is room, and else begin another one
//   refine    passes over all items: each moves to the community, with room, with which it shares
//             the most weight of lists
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kinds/embedding/query_lists.hpp"

namespace espalier::embedding {

struct CommunityOptions {
  std::uint32_t items_max = 128;  // of one community
  int passes = 2;
  /// Refining ignores longer lists, because it costs the square of a list.
  std::size_t list_max = 512;
};

/// Reports the progress of a long computation.
using WorkProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

struct Communities {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  std::vector<std::uint32_t> of_item;  // kNone: in no list
  std::uint32_t count = 0;             // numbers are below
};

/// Cost: the ids of all lists, and in each pass the squares of their lengths; memory for a copy of
/// the lists. Requires: ids are below `items`.
[[nodiscard]] Communities find_communities(const QueryLists& lists, std::uint64_t items,
                                           const CommunityOptions& options = {},
                                           const WorkProgress& progress = {});

}  // namespace espalier::embedding

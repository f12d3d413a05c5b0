// SPDX-License-Identifier: Apache-2.0
// Communities: items that lists often have together, at most 128 of them, as the first step towards
// groups. Where MERCI has a partition by PaToH, these are found greedily, by streaming:
//
//   place     lists by falling weight: items that have no community yet go to the one that most of
//             the list's items are in, while there is room, and else begin another one
//   refine    passes over all items: each moves to the community, with room, that it shares the
//             most weight of lists with
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
  /// Lists that are longer are not looked at by refining, which costs the square of a list.
  std::size_t list_max = 512;
};

/// How far a long piece of work has come.
using WorkProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

struct Communities {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  std::vector<std::uint32_t> of_item;  // kNone: no list has it
  std::uint32_t count = 0;             // numbers are below
};

/// Cost: the ids of all lists, and in each pass the squares of their lengths; memory for as much
/// again as the lists. Requires: ids are below `items`.
[[nodiscard]] Communities find_communities(const QueryLists& lists, std::uint64_t items,
                                           const CommunityOptions& options = {},
                                           const WorkProgress& progress = {});

}  // namespace espalier::embedding

// SPDX-License-Identifier: Apache-2.0
// Synthetic lists in the shape of those that MERCI takes from Amazon's reviews: each list has the
// items that are bought or viewed with one item, and occurs as often as that one was reviewed. Four
// fifths of the reviews are for training, one fifth is held out, so most lists occur in both, with
// different weights.
//
//   items        of one of six categories, or as many as are wanted
//   lists        one for each sixth item, of 2 ids or more, with a mean of about 50
//   ids          8 of 10 of one to three communities of 128 items, in which few are frequent;
//                the others of all items
//   weight       a Pareto distribution of exponent 1.2, cut at 10 000
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kinds/embedding/query_lists.hpp"

namespace espalier::embedding {

struct ReviewCategory {
  std::string_view name;
  std::uint32_t items;
};
/// sports, clothing, electronics, home-kitchen, office, books, as large as MERCI's.
[[nodiscard]] std::span<const ReviewCategory> review_categories();

struct ReviewLists {
  QueryLists learned;
  QueryLists held_out;
};
/// Deterministic for a seed, as far as log() and pow() are. Requires: 256 items or more.
[[nodiscard]] ReviewLists review_lists(std::uint32_t items, std::uint64_t seed);

}  // namespace espalier::embedding

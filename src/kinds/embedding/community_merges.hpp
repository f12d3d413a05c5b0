// SPDX-License-Identifier: Apache-2.0
// The merges of one community of items (greedy_groups.hpp), the best ones first.
//
// Thread: one at a time.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <vector>

namespace espalier::embedding {

inline constexpr std::uint32_t kCommunityItemsMax = 128;

/// A set of items of a community, or of groups, named by their first items.
struct ItemSet {
  std::array<std::uint64_t, 2> words{};

  [[nodiscard]] bool has(std::uint32_t item) const {
    return (words[item / 64] >> (item % 64) & 1) != 0;
  }
  void add(std::uint32_t item) { words[item / 64] |= std::uint64_t{1} << (item % 64); }
  void remove(std::uint32_t item) { words[item / 64] &= ~(std::uint64_t{1} << (item % 64)); }
  [[nodiscard]] int size() const { return std::popcount(words[0]) + std::popcount(words[1]); }
  template <class Use>
  void each(const Use& use) const {
    for (std::uint32_t w = 0; w < 2; ++w) {
      for (std::uint64_t left = words[w]; left != 0; left &= left - 1) {
        use(w * 64 + static_cast<std::uint32_t>(std::countr_zero(left)));
      }
    }
  }
  friend auto operator<=>(const ItemSet&, const ItemSet&) = default;
};

/// The part of a list that lies in one community.
struct ListPart {
  ItemSet items;
  std::uint64_t weight;
};

/// The group of `second` joins that of `first`: each is named by its first item.
struct Merge {
  double gain;  // benefit for each additional row of sums
  std::uint32_t sums;
  std::uint8_t first;
  std::uint8_t second;
};

/// Cost: O(items^2) and, for each merge, the parts that have the merged group.
/// Requires: at most kCommunityItemsMax items; parts have two items or more, and may be changed.
[[nodiscard]] std::vector<Merge> merges_of(std::uint32_t items, std::vector<ListPart>& parts,
                                           std::uint32_t group_rows_max);

}  // namespace espalier::embedding

// SPDX-License-Identifier: Apache-2.0
// How the rows of groups are numbered, so that offsets are arithmetic [MERCI §4].
//
//   places   groups of 2 | groups of 3 | ... | groups of 8     a row of a group has a place
//   sums     1 of each   | 4 of each   | ... | 247 of each     2^n - 1 - n for n rows
//
// Groups of one size lie together, in the order in which they were given. So from a place follow,
// by a few comparisons and one multiplication, its group, its bit in it, and where the sums of the
// group begin. The sum of some of a group's rows has the rank of its mask among the masks of two
// bits or more.
//
// Thread: plain values.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>

#include "espalier/embedding_types.hpp"
#include "kinds/embedding/row_place.hpp"

namespace espalier::embedding {

/// An id with this bit is a place: that of a row which has a group.
inline constexpr std::uint32_t kPlaceBit = std::uint32_t{1} << 31;
inline constexpr std::uint32_t kNoPlace = ~std::uint32_t{0};
/// No table with groups has more, so that no id has kPlaceBit.
inline constexpr std::uint64_t kGroupedTableRowsMax = kPlaceBit;

/// A group, by the place of its first row.
struct GroupPlace {
  std::uint32_t first = 0;
  std::uint32_t rows = 0;
  std::uint32_t sums = 0;  // where its sums begin
};

/// Which of a group's sums that of `mask` is. Requires: it has two bits or more.
[[nodiscard]] constexpr std::uint32_t rank_of_mask(std::uint32_t mask) {
  return mask - 1 - static_cast<std::uint32_t>(std::bit_width(mask));
}

class MemoNumbering {
 public:
  MemoNumbering() = default;
  /// Requires: no fault_of_groups().
  explicit MemoNumbering(const RowGroups& groups);

  [[nodiscard]] std::uint32_t places() const { return first_.back(); }
  [[nodiscard]] std::uint64_t sums() const { return sums_.back(); }
  [[nodiscard]] std::uint32_t groups() const { return groups_; }

  /// Requires: the place is below places().
  [[nodiscard]] GroupPlace group_of(std::uint32_t place) const {
    std::uint32_t of_size = 0;
    while (place >= first_[of_size + 1]) ++of_size;
    const std::uint32_t rows = of_size + RowGroups::kRowsMin;
    const std::uint32_t group = kDividers[of_size].page_of(place - first_[of_size]);
    return {first_[of_size] + group * rows, rows,
            static_cast<std::uint32_t>(sums_[of_size]) + group * group_sums(rows)};
  }
  /// The first place and the first sum of the groups of one size.
  [[nodiscard]] std::uint32_t first_of_size(std::uint32_t rows) const {
    return first_[rows - RowGroups::kRowsMin];
  }

 private:
  static constexpr std::size_t kSizes = RowGroups::kRowsMax - RowGroups::kRowsMin + 1;
  static constexpr std::array<PageDivider, kSizes> kDividers{
      PageDivider(2), PageDivider(3), PageDivider(4), PageDivider(5),
      PageDivider(6), PageDivider(7), PageDivider(8)};

  std::array<std::uint32_t, kSizes + 1> first_{};  // places before the groups of each size
  std::array<std::uint64_t, kSizes + 1> sums_{};
  std::uint32_t groups_ = 0;
};

/// Why a table of so many rows cannot have these groups; nothing: it can.
/// Cost: a look at each id, and a bit for each row of the table.
[[nodiscard]] std::optional<std::string> fault_of_groups(const RowGroups& groups,
                                                         std::uint64_t rows);

}  // namespace espalier::embedding

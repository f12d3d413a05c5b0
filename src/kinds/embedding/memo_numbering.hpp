// SPDX-License-Identifier: Apache-2.0
// The numbering of the rows of groups, by which offsets are arithmetic [MERCI §4].
//
//   groups   those of 2 | those of 3 | ... | those of 8     numbered, in the order of their sizes
//   members  2 of each  | 3 of each  | ... | 8 of each      rows of groups, consecutive
//   sums     1 of each  | 4 of each  | ... | 247 of each    2^n - 1 - n for n rows
//
// Groups of one size lie together, in the order in which they were given. A row of a group has a
// place: the number of the group, and in the low 3 bits its index in the group. So shifts of a
// place give all that a bag needs for each id, and a few comparisons and a multiplication give the
// offsets of a group's members and sums. The sum of some of a group's rows has the rank of its mask
// among the masks of two bits or more.
//
// Thread: plain values.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "espalier/embedding_types.hpp"

namespace espalier::embedding {

/// An id with this bit is a place: that of a row with a group.
inline constexpr std::uint32_t kPlaceBit = std::uint32_t{1} << 31;
inline constexpr std::uint32_t kNoPlace = ~std::uint32_t{0};
/// Limit on rows of a table with groups, so that no id has kPlaceBit.
inline constexpr std::uint64_t kGroupedTableRowsMax = kPlaceBit;
/// Limit on groups of a table, so that no place has kPlaceBit.
inline constexpr std::uint32_t kGroupsMax = 1 << 28;

[[nodiscard]] constexpr std::uint32_t place_in(std::uint32_t group, std::uint32_t member) {
  return group << 3 | member;
}
[[nodiscard]] constexpr std::uint32_t group_of_place(std::uint32_t place) { return place >> 3; }
/// The bit of a row in the masks of its group.
[[nodiscard]] constexpr std::uint32_t bit_of_place(std::uint32_t place) {
  return std::uint32_t{1} << (place & 7);
}
static_assert(RowGroups::kRowsMax == 8);

struct NumberedGroup {
  std::uint32_t rows = 0;
  std::uint32_t members = 0;  // offset of its rows among those of all groups
  std::uint32_t sums = 0;     // offset of its sums
};

/// The index of the sum of `mask` among a group's sums. Requires: it has two bits or more.
[[nodiscard]] constexpr std::uint32_t rank_of_mask(std::uint32_t mask) {
  return mask - 1 - static_cast<std::uint32_t>(std::bit_width(mask));
}

/// The number of groups of each size, counted in pieces.
class GroupSizes {
 public:
  /// Counts some more. Returns why these are no sizes of groups; nothing: they are.
  [[nodiscard]] std::optional<std::string> add(std::span<const std::uint8_t> sizes);
  /// Why groups of all these sizes, with so many ids, cannot be numbered; nothing: they can.
  [[nodiscard]] std::optional<std::string> fault_with(std::size_t ids) const;
  [[nodiscard]] std::uint32_t of(std::uint32_t rows) const {
    return of_size_[rows - RowGroups::kRowsMin];
  }

 private:
  std::array<std::uint32_t, RowGroups::kRowsMax - RowGroups::kRowsMin + 1> of_size_{};
  std::size_t groups_ = 0;
};

class MemoNumbering {
 public:
  MemoNumbering() = default;
  /// Requires: no fault_with() the ids of these groups.
  explicit MemoNumbering(const GroupSizes& sizes);

  [[nodiscard]] std::uint32_t groups() const { return first_.back(); }
  [[nodiscard]] std::uint32_t members() const { return members_.back(); }
  [[nodiscard]] std::uint64_t sums() const { return sums_.back(); }

  /// Requires: the group is below groups().
  [[nodiscard]] NumberedGroup group(std::uint32_t number) const {
    // Sizes of groups are unpredictable for a branch: they are counted instead.
    std::uint32_t of_size = 0;
    for (std::size_t size = 1; size < kSizes; ++size) of_size += number >= first_[size] ? 1 : 0;
    const std::uint32_t within = number - first_[of_size];
    const std::uint32_t rows = of_size + RowGroups::kRowsMin;
    return {rows, members_[of_size] + within * rows,
            static_cast<std::uint32_t>(sums_[of_size]) + within * group_sums(rows)};
  }
  /// The first group of so many rows.
  [[nodiscard]] std::uint32_t first_of_size(std::uint32_t rows) const {
    return first_[rows - RowGroups::kRowsMin];
  }
  /// Whether a row has it, for untrusted places.
  [[nodiscard]] bool is_place(std::uint32_t place) const {
    const std::uint32_t number = group_of_place(place);
    return number < groups() && (place & 7) < group(number).rows;
  }

 private:
  static constexpr std::size_t kSizes = RowGroups::kRowsMax - RowGroups::kRowsMin + 1;

  // Before the groups of each size.
  std::array<std::uint32_t, kSizes + 1> first_{};
  std::array<std::uint32_t, kSizes + 1> members_{};
  std::array<std::uint64_t, kSizes + 1> sums_{};
};

/// Why no table of so many rows can have so many groups; nothing: it can.
[[nodiscard]] std::optional<std::string> fault_of_counts(std::uint64_t rows, std::size_t groups);
/// Why an id of the groups of a table of so many rows is wrong: no row has it, or another group.
[[nodiscard]] std::string describe_wrong_member(std::uint32_t id, std::size_t place,
                                                std::uint64_t rows);

/// Why a table of so many rows cannot have these groups; nothing: it can. Cost: reads each id, and
/// a bit for each row of the table.
[[nodiscard]] std::optional<std::string> fault_of_groups(const RowGroups& groups,
                                                         std::uint64_t rows);

}  // namespace espalier::embedding

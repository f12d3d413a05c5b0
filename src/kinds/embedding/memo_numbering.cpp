// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/memo_numbering.hpp"

#include <limits>
#include <vector>

namespace espalier::embedding {

std::optional<std::string> GroupSizes::add(std::span<const std::uint8_t> sizes) {
  for (const std::uint8_t size : sizes) {
    if (size < RowGroups::kRowsMin || size > RowGroups::kRowsMax) {
      return "group " + std::to_string(groups_) + " has " + std::to_string(size) +
             " rows, not 2 to 8";
    }
    ++of_size_[size - RowGroups::kRowsMin];
    ++groups_;
  }
  return std::nullopt;
}

std::optional<std::string> GroupSizes::fault_with(std::size_t ids) const {
  std::uint64_t grouped = 0;
  std::uint64_t sums = 0;
  for (std::uint32_t rows = RowGroups::kRowsMin; rows <= RowGroups::kRowsMax; ++rows) {
    grouped += std::uint64_t{of(rows)} * rows;
    sums += std::uint64_t{of(rows)} * group_sums(rows);
  }
  if (grouped != ids) {
    return "groups have " + std::to_string(grouped) + " rows together, and there are " +
           std::to_string(ids) + " ids";
  }
  if (sums > std::numeric_limits<std::uint32_t>::max()) return "the groups have too many sums";
  return std::nullopt;
}

MemoNumbering::MemoNumbering(const GroupSizes& sizes) {
  for (std::uint32_t i = 0; i < kSizes; ++i) {
    const std::uint32_t rows = i + RowGroups::kRowsMin;
    first_[i + 1] = first_[i] + sizes.of(rows);
    members_[i + 1] = members_[i] + sizes.of(rows) * rows;
    sums_[i + 1] = sums_[i] + std::uint64_t{sizes.of(rows)} * group_sums(rows);
  }
}

std::optional<std::string> fault_of_counts(std::uint64_t rows, std::size_t groups) {
  if (rows > kGroupedTableRowsMax) return "a table of more than 2^31 rows has no groups";
  if (groups > kGroupsMax) return "there are more than 2^28 groups";
  return std::nullopt;
}

std::string describe_wrong_member(std::uint32_t id, std::size_t place, std::uint64_t rows) {
  const std::string at = "id " + std::to_string(id) + " at place " + std::to_string(place);
  if (id >= rows) return at + " is not below the table's " + std::to_string(rows) + " rows";
  return at + " is in a group already";
}

std::optional<std::string> fault_of_groups(const RowGroups& groups, std::uint64_t rows) {
  if (auto fault = fault_of_counts(rows, groups.sizes.size())) return fault;
  GroupSizes sizes;
  if (auto fault = sizes.add(groups.sizes)) return fault;
  if (auto fault = sizes.fault_with(groups.rows.size())) return fault;
  std::vector<bool> seen(rows);
  for (std::size_t i = 0; i < groups.rows.size(); ++i) {
    const std::uint32_t row = groups.rows[i];
    if (row >= rows || seen[row]) return describe_wrong_member(row, i, rows);
    seen[row] = true;
  }
  return std::nullopt;
}

}  // namespace espalier::embedding

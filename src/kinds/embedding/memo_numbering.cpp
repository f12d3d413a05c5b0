// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/memo_numbering.hpp"

#include <limits>
#include <vector>

namespace espalier::embedding {

MemoNumbering::MemoNumbering(const RowGroups& groups) {
  std::array<std::uint32_t, kSizes> of_size{};
  for (const std::uint8_t size : groups.sizes) ++of_size[size - RowGroups::kRowsMin];
  for (std::uint32_t i = 0; i < kSizes; ++i) {
    const std::uint32_t rows = i + RowGroups::kRowsMin;
    first_[i + 1] = first_[i] + of_size[i];
    members_[i + 1] = members_[i] + of_size[i] * rows;
    sums_[i + 1] = sums_[i] + std::uint64_t{of_size[i]} * group_sums(rows);
  }
}

std::optional<std::string> fault_of_groups(const RowGroups& groups, std::uint64_t rows) {
  if (rows > kGroupedTableRowsMax) return "a table of more than 2^31 rows has no groups";
  if (groups.sizes.size() > kGroupsMax) return "there are more than 2^28 groups";
  std::uint64_t grouped = 0;
  std::uint64_t sums = 0;
  for (std::size_t i = 0; i < groups.sizes.size(); ++i) {
    const std::uint32_t size = groups.sizes[i];
    if (size < RowGroups::kRowsMin || size > RowGroups::kRowsMax) {
      return "group " + std::to_string(i) + " has " + std::to_string(size) + " rows, not 2 to 8";
    }
    grouped += size;
    sums += group_sums(size);
  }
  if (grouped != groups.rows.size()) {
    return "groups have " + std::to_string(grouped) + " rows together, and there are " +
           std::to_string(groups.rows.size()) + " ids";
  }
  if (sums > std::numeric_limits<std::uint32_t>::max()) return "the groups have too many sums";
  std::vector<bool> seen(rows);
  for (std::size_t i = 0; i < groups.rows.size(); ++i) {
    const std::uint32_t row = groups.rows[i];
    const auto at = [&] { return "id " + std::to_string(row) + " at place " + std::to_string(i); };
    if (row >= rows) return at() + " is not below the table's " + std::to_string(rows) + " rows";
    if (seen[row]) return at() + " is in a group already";
    seen[row] = true;
  }
  return std::nullopt;
}

}  // namespace espalier::embedding

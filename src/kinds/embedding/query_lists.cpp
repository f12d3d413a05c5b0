// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/query_lists.hpp"

#include <algorithm>

namespace espalier::embedding {

std::uint64_t GroupLists::sums() const {
  std::uint64_t all = 0;
  for (const std::uint8_t size : sizes) all += group_sums(size);
  return all;
}

namespace {

constexpr std::uint64_t lines_of(std::uint64_t bytes) { return (bytes + 63) / 64; }

}  // namespace

std::uint64_t ReadRows::lines(std::uint32_t row_bytes, std::uint32_t dimension,
                              bool renumbered) const {
  const std::uint64_t sum_bytes = std::uint64_t{dimension} * sizeof(float);
  return (rows - sums) * lines_of(row_bytes) + sums * lines_of(sum_bytes) + (renumbered ? 0 : ids);
}

double ReadRows::lines_saved(std::uint32_t row_bytes, std::uint32_t dimension,
                             bool renumbered) const {
  if (ids == 0) return 0;
  return 1 - static_cast<double>(lines(row_bytes, dimension, renumbered)) /
                 static_cast<double>(ids * lines_of(row_bytes));
}

ReadRows rows_to_read(const QueryLists& lists, const RowGroups& groups, std::uint64_t rows) {
  constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<std::uint32_t> group_of(rows, kNone);
  std::size_t at = 0;
  for (std::uint32_t group = 0; group < groups.sizes.size(); ++group) {
    for (std::uint32_t i = 0; i < groups.sizes[group]; ++i) group_of[groups.rows[at++]] = group;
  }
  ReadRows read;
  std::vector<std::uint32_t> ids;
  std::vector<std::uint32_t> met;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    ids.assign(lists.list(i).begin(), lists.list(i).end());
    std::ranges::sort(ids);
    met.clear();
    std::uint64_t alone = 0;
    for (std::size_t j = 0; j < ids.size(); ++j) {
      const std::uint32_t group = group_of[ids[j]];
      if (group == kNone || (j != 0 && ids[j] == ids[j - 1])) {
        ++alone;
      } else {
        met.push_back(group);
      }
    }
    std::ranges::sort(met);
    std::uint64_t groups_met = 0;
    std::uint64_t sums = 0;  // a group of which a list has one row has that read
    for (std::size_t j = 0, next = 0; j < met.size(); j = next) {
      while (next < met.size() && met[next] == met[j]) ++next;
      ++groups_met;
      sums += next - j > 1 ? 1 : 0;
    }
    read.ids += std::uint64_t{lists.weight(i)} * ids.size();
    read.rows += lists.weight(i) * (alone + groups_met);
    read.sums += lists.weight(i) * sums;
  }
  return read;
}

std::uint64_t sums_for_ratio(std::uint64_t rows, std::uint32_t row_bytes, std::uint32_t dimension,
                             double ratio) {
  // The numbering: a word for each row, and one for each row that a group has: at most two a row.
  const double numbering = static_cast<double>(rows) * 2 * sizeof(std::uint32_t);
  const double bytes = static_cast<double>(rows) * row_bytes * ratio - numbering;
  if (bytes <= 0) return 0;
  return static_cast<std::uint64_t>(bytes / (static_cast<double>(dimension) * sizeof(float)));
}

}  // namespace espalier::embedding

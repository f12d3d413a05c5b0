// SPDX-License-Identifier: Apache-2.0
// Lists of queried ids, each with its frequency, the groups of rows made from them, and the share
// of reads that groups save.
//
// Thread: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "espalier/embedding_types.hpp"

namespace espalier::embedding {

class QueryLists {
 public:
  void add(std::span<const std::uint32_t> ids, std::uint32_t weight) {
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    ends_.push_back(ids_.size());
    weights_.push_back(weight);
  }

  [[nodiscard]] std::size_t size() const { return ends_.size(); }
  [[nodiscard]] std::span<const std::uint32_t> list(std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::span(ids_).subspan(begin, ends_[i] - begin);
  }
  [[nodiscard]] std::uint32_t weight(std::size_t i) const { return weights_[i]; }
  /// The ids of all lists, each list once.
  [[nodiscard]] std::span<const std::uint32_t> ids() const { return ids_; }

 private:
  std::vector<std::uint32_t> ids_;
  std::vector<std::uint64_t> ends_;
  std::vector<std::uint32_t> weights_;
};

/// Groups that own their memory.
struct GroupLists {
  std::vector<std::uint8_t> sizes;
  std::vector<std::uint32_t> rows;

  void add(std::span<const std::uint32_t> group) {
    sizes.push_back(static_cast<std::uint8_t>(group.size()));
    rows.insert(rows.end(), group.begin(), group.end());
  }
  [[nodiscard]] RowGroups get() const { return {sizes, rows}; }
  /// Rows of sums that they keep.
  [[nodiscard]] std::uint64_t sums() const;
};

/// The rows read for lists, each as often as it occurs.
struct ReadRows {
  std::uint64_t ids = 0;
  std::uint64_t rows = 0;  // sums among them
  std::uint64_t sums = 0;

  /// Cache lines of a table of rows of `row_bytes` that are read: of rows, of sums, and of each id
  /// the one that has its place, unless clients send places (`renumbered`).
  [[nodiscard]] std::uint64_t lines(std::uint32_t row_bytes, std::uint32_t dimension,
                                    bool renumbered) const;
  /// The part of the lines of all ids' rows that is not read; below 0: more lines are.
  [[nodiscard]] double lines_saved(std::uint32_t row_bytes, std::uint32_t dimension,
                                   bool renumbered) const;
  [[nodiscard]] double saved() const {
    return ids == 0 ? 0 : 1 - static_cast<double>(rows) / static_cast<double>(ids);
  }
};
/// Requires: all ids are below `rows`, and those of groups are unique.
[[nodiscard]] ReadRows rows_to_read(const QueryLists& lists, const RowGroups& groups,
                                    std::uint64_t rows);

/// The number of sums that fit a table of `rows` rows of `row_bytes` each, if all sums with their
/// numbering may have `ratio` of the rows' bytes.
[[nodiscard]] std::uint64_t sums_for_ratio(std::uint64_t rows, std::uint32_t row_bytes,
                                           std::uint32_t dimension, double ratio);

}  // namespace espalier::embedding

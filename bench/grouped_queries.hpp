// SPDX-License-Identifier: Apache-2.0
// Queries of `espalier-bench inference`: drawn uniformly, or the held-out lists of a category of
// reviews, with groups of rows made from the other lists; and MERCI's method of reading their sums.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/inference_data.hpp"
#include "kinds/embedding/greedy_groups.hpp"
#include "kinds/embedding/memo_numbering.hpp"
#include "kinds/embedding/review_lists.hpp"

namespace espalier::bench {

/// Bags of ids: bag i is of ids[ends[i - 1]] to ids[ends[i]].
struct QuerySet {
  std::vector<std::uint32_t> ids;
  std::vector<std::uint64_t> ends;

  [[nodiscard]] std::uint64_t begin(std::uint64_t i) const { return i == 0 ? 0 : ends[i - 1]; }
  [[nodiscard]] std::span<const std::uint32_t> bag(std::uint64_t i) const {
    return std::span(ids).subspan(begin(i), ends[i] - begin(i));
  }
};
[[nodiscard]] QuerySet uniform_queries(const InferenceShape& shape, std::uint64_t bags,
                                       std::uint32_t length);

/// Items of a category, at a scale; nothing: unknown category.
[[nodiscard]] std::optional<std::uint32_t> category_items(std::string_view category, double scale);

/// Lists of a category, and groups for some ratios of memory, made on first use.
class ReviewData {
 public:
  explicit ReviewData(const InferenceShape& shape);

  /// Held-out lists, each as likely as it is frequent.
  [[nodiscard]] QuerySet queries(std::uint64_t bags) const;
  /// `ratio`: of the memory of rows of so many bytes.
  [[nodiscard]] const embedding::GroupLists& groups(double ratio, std::uint32_t row_bytes);

 private:
  const InferenceShape shape_;
  const embedding::ReviewLists lists_;
  std::optional<embedding::Communities> communities_;
  std::map<std::pair<double, std::uint32_t>, embedding::GroupLists> groups_;
};

/// Rows and sums in the layout of MERCI's evaluator, renumbered [MERCI §4]: a table of rows without
/// a group, and one of sums, in which a row of a group stands under its mask, too.
class MerciGrouped {
 public:
  MerciGrouped(const InferenceShape& shape, const embedding::GroupLists& groups);

  /// Ids in this table's numbering, ascending: converted once, before measurements.
  [[nodiscard]] std::vector<std::uint32_t> renumbered(std::span<const std::uint32_t> ids) const;
  /// MERCI's buffer of rows to read; one for each thread.
  struct Buffer {
    static constexpr std::size_t kRows = 512;
    Buffer() { rows.reserve(kRows); }
    std::vector<const std::vector<float>*> rows;
    std::uint64_t taken = 0;
  };
  /// Returns the number of rows read. Thread: any, each with its buffer.
  std::uint64_t sum(const std::vector<std::uint32_t>& query, std::vector<float>& into,
                    Buffer& buffer) const;

 private:
  const embedding::MemoNumbering numbering_;
  std::vector<std::uint32_t> numbers_;  // of each row
  MerciTable alone_;                    // by row
  MerciTable sums_;                     // by group and mask
  std::vector<std::uint64_t> begins_;   // of each group in sums_
};

}  // namespace espalier::bench

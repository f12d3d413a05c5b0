// SPDX-License-Identifier: Apache-2.0
// A pipeline compiled for batches: each expression a sequence of instructions over registers.
//
// Compiled once; runs share it. Instructions are in postorder, left to right, as the reference
// evaluates, so that the first failing row, and in it the first failing expression, is the same.
//
// Thread: immutable; safe to read from any.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "kinds/table/batch_kernels.hpp"
#include "kinds/table/batch_range.hpp"
#include "kinds/table/pipeline.hpp"

namespace espalier::table {

/// Code of one operator.
struct Stage {
  std::vector<Instruction> code;
  std::uint32_t operator_index = 0;
  std::uint16_t result = 0;          ///< of a filter: the register of its condition
  std::optional<ColumnRange> range;  ///< of a range filter, which needs no code
};

/// Source of an item's value.
struct ItemSource {
  bool loaded = false;  ///< it is in a register, not only in the rows
  std::uint16_t reg = 0;
  const Column* column = nullptr;  ///< of the table, where it is one
};

/// Cache lines of a row that a pipeline reads, numbered from the row's begin.
struct WantedLines {
  std::vector<std::uint32_t> filters;  ///< by filters
  std::vector<std::uint32_t> items;    ///< by items, besides
  std::uint32_t total = 0;             ///< of a row
};

class BatchProgram {
 public:
  /// Cost: linear in the pipeline; a few microseconds.
  explicit BatchProgram(Pipeline pipeline);
  BatchProgram(const BatchProgram&) = delete;
  BatchProgram& operator=(const BatchProgram&) = delete;

  [[nodiscard]] const Pipeline& pipeline() const { return pipeline_; }
  [[nodiscard]] const std::vector<Stage>& filters() const { return filters_; }
  [[nodiscard]] const Stage& items() const { return items_; }
  [[nodiscard]] const std::vector<ItemSource>& sources() const { return sources_; }
  [[nodiscard]] std::size_t registers() const { return registers_; }
  /// Registers of constants, with the constants.
  [[nodiscard]] const std::vector<std::pair<std::uint16_t, const Constant*>>& constants() const {
    return constants_;
  }
  /// Smart addressing, i.e. reading only wanted lines: as the pipeline says, or automatically if
  /// they are less than 0.7 of a row's.
  [[nodiscard]] bool is_smart() const { return smart_; }
  [[nodiscard]] const WantedLines& lines() const { return lines_; }
  /// Whether it has regular expressions, of which one may cost as much as thousands of other
  /// instructions.
  [[nodiscard]] bool has_regexes() const { return has_regexes_; }
  [[nodiscard]] std::size_t likes() const { return patterns_.size(); }
  /// The number of LIKEs with `_`.
  [[nodiscard]] std::size_t likes_that_count() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(patterns_, &LikePattern::counts_code_points));
  }
  /// Maximum bytes read of a row.
  [[nodiscard]] std::size_t bytes_of_row() const {
    constexpr std::size_t kLineBytes = 64;
    const std::size_t lines = lines_.filters.size() + lines_.items.size();
    return smart_ ? kLineBytes * lines : pipeline_.schema.row_bytes();
  }

 private:
  friend class BatchCompiler;

  void choose_addressing();

  Pipeline pipeline_;
  std::vector<Stage> filters_;
  Stage items_;
  std::vector<ItemSource> sources_;
  std::size_t registers_ = 0;
  std::vector<std::pair<std::uint16_t, const Constant*>> constants_;
  std::deque<Constant> own_constants_;  // converted constants
  std::deque<Candidates> candidates_;
  std::deque<LikePattern> patterns_;
  bool smart_ = false;
  bool has_regexes_ = false;
  WantedLines lines_;
};

}  // namespace espalier::table

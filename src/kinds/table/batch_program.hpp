// SPDX-License-Identifier: Apache-2.0
// A pipeline compiled for batches: each expression a row of instructions over registers.
//
// Compiled once; runs share it. Instructions stand children first, left to right, as the reference
// evaluates, so that the first row that fails, and in it the first expression, is the same.
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

/// What one operator works out.
struct Stage {
  std::vector<Instruction> code;
  std::uint32_t operator_index = 0;
  std::uint16_t result = 0;          ///< of a filter: the register of its condition
  std::optional<ColumnRange> range;  ///< of a filter that says one: it needs no code
};

/// Where the value of an item comes from.
struct ItemSource {
  bool loaded = false;  ///< it lies in a register, not only in the rows
  std::uint16_t reg = 0;
  const Column* column = nullptr;  ///< of the table, where it is one
};

/// Which cache lines of a row are wanted, by number from the row's begin.
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
  /// Registers that hold constants, and these.
  [[nodiscard]] const std::vector<std::pair<std::uint16_t, const Constant*>>& constants() const {
    return constants_;
  }
  /// Whether only wanted lines are read: as the pipeline says, or by itself where they are less
  /// than 0.7 of a row's.
  [[nodiscard]] bool is_smart() const { return smart_; }
  [[nodiscard]] const WantedLines& lines() const { return lines_; }
  /// Whether it searches texts, of which one may cost as much as thousands of other instructions.
  [[nodiscard]] bool has_regexes() const { return has_regexes_; }
  [[nodiscard]] std::size_t likes() const { return patterns_.size(); }
  /// How many of them have `_`.
  [[nodiscard]] std::size_t likes_that_count() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(patterns_, &LikePattern::counts_code_points));
  }
  /// Bytes of a row that are read at most.
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
  std::deque<Constant> own_constants_;  // those that were converted
  std::deque<Candidates> candidates_;
  std::deque<LikePattern> patterns_;
  bool smart_ = false;
  bool has_regexes_ = false;
  WantedLines lines_;
};

}  // namespace espalier::table

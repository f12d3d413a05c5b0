// SPDX-License-Identifier: Apache-2.0
// The client's end of a query: merges received rows, partial groups or repeated rows among them,
// into the answer.
//
//   ResultMerge merge(pipeline, seed);
//   while (...) merge.take(rows);          // as they come; false: no more are wanted
//   for (std::size_t i = 0; i < merge.size(); ++i) value(pipeline, item, merge.row(i));
//
// Without distinct and group by, rows are only counted and cut at the limit, and used as they
// arrive: see is_streaming().
//
// Rows from a node are untrusted bytes. A row that is not canonical counts as a distinct row.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kinds/table/aggregate_state.hpp"
#include "kinds/table/group_table.hpp"
#include "kinds/table/pipeline.hpp"
#include "kinds/table/value.hpp"

namespace espalier::table {

/// The type of an item's value in the answer. avg is a real; sums of integers and decimals have 128
/// bits.
[[nodiscard]] ValueType answer_type(const Item& item);

/// The value of an item. `row` is one of the result's, all partial groups merged.
[[nodiscard]] Value answer_value(const Pipeline& pipeline, const Item& item, const std::byte* row);

class ResultMerge {
 public:
  /// Requires: `pipeline` lives as long.
  ResultMerge(const Pipeline& pipeline, std::uint64_t seed);

  /// Whether rows are the answer as they arrive: no merging is needed.
  [[nodiscard]] bool is_streaming() const { return !groups_; }

  /// Takes whole rows of the result. Returns how many of them belong to a streaming answer: all, or
  /// those up to the limit.
  std::size_t take(std::span<const std::byte> rows);
  /// Whether the limit is reached: further rows change nothing.
  [[nodiscard]] bool is_full() const;

  /// Rows of a non-streaming answer, in order of first occurrence.
  [[nodiscard]] std::size_t size() const;
  /// Requires: i < size().
  [[nodiscard]] const std::byte* row(std::size_t i) const { return groups_->row(i); }

 private:
  const Pipeline& pipeline_;
  std::vector<AggregateSlot> slots_;
  std::optional<GroupTable> groups_;
  std::uint64_t streamed_ = 0;
};

}  // namespace espalier::table

// SPDX-License-Identifier: Apache-2.0
// Runs a pipeline row by row, value by value, as the text of docs/formats/pipeline.md says it, with
// all the memory it wants: the oracle of the executor that nodes use (kinds/table/batch_run.hpp).
//
// Every expression of a row that reaches an operator is worked out whole, children first, left to
// right, `and` and `or` too; so which error a run ends with is the same for every executor: that
// of the first row that has one. Rows behind the last one that a limit wants are not looked at.
//
// Cost: tens of allocations for a row.
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <vector>

#include "kinds/table/pipeline.hpp"
#include "kinds/table/run.hpp"
#include "kinds/table/value.hpp"

namespace espalier::table {

struct ReferenceResult {
  std::vector<std::byte> rows;  ///< of Pipeline::result; groups in order of their first row
  std::size_t count = 0;
};

[[nodiscard]] std::expected<ReferenceResult, RunError> run_reference(const Pipeline& pipeline,
                                                                     RowSource& source);

/// What an expression comes to for one row. Errors: the node whose result does not fit.
[[nodiscard]] std::expected<Value, std::uint16_t> evaluate(const Pipeline& pipeline,
                                                           std::uint16_t node,
                                                           const std::byte* row);

}  // namespace espalier::table

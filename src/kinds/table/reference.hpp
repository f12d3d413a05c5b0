// SPDX-License-Identifier: Apache-2.0
// The reference executor: runs a pipeline row by row and value by value, as
// docs/formats/pipeline.md specifies it, in unbounded memory. The oracle of the executor of nodes
// (kinds/table/batch_run.hpp).
//
// It evaluates every expression of a row that reaches an operator completely, children first, left
// to right, also for `and` and `or`, so that all executors end with the same error: that of the
// first failing row. Rows after the last one that a limit needs are not read.
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

/// Evaluates an expression for one row. Errors: the node whose result does not fit.
[[nodiscard]] std::expected<Value, std::uint16_t> evaluate(const Pipeline& pipeline,
                                                           std::uint16_t node,
                                                           const std::byte* row);

}  // namespace espalier::table

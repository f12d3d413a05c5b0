// SPDX-License-Identifier: Apache-2.0
// EXPLAIN: the operators of a pipeline, in lines for people.
//
// Thread: safe, no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/table/batch_program.hpp"

namespace espalier::table {

/// E.g. "scan, smart: 2 of 4 lines of a row", "filter: b < 9.95", "group by a: sum(b), count(*)",
/// "limit: 3", "pack: rows of 32 bytes".
[[nodiscard]] std::vector<std::string> explain(const BatchProgram& program);

/// Memory of an operator while it runs: its registers, rows in clear, keys of a batch, groups, the
/// stage.
struct OperatorState {
  std::string_view name;
  std::size_t bytes = 0;
};
/// In the order of explain()'s lines. `memory_bytes`: the peak that a run reported
/// (wire::QueryNumbers); 0: none was made, and groups are omitted. All states but the last one, the
/// stage, add up to it.
[[nodiscard]] std::vector<OperatorState> operator_states(const BatchProgram& program,
                                                         std::uint64_t memory_bytes);

}  // namespace espalier::table

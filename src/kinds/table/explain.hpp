// SPDX-License-Identifier: Apache-2.0
// What a pipeline does, in lines for people: one for each operator.
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

/// What an operator keeps while it runs: registers of its own, rows in clear, keys of a batch,
/// groups, the stage.
struct OperatorState {
  std::string_view name;
  std::size_t bytes = 0;
};
/// In the order of explain()'s lines. `memory_bytes`: what a run said that it needed at most
/// (wire::QueryNumbers); 0: none was made, and nothing is told of groups. All states but the last,
/// the stage, are that together.
[[nodiscard]] std::vector<OperatorState> operator_states(const BatchProgram& program,
                                                         std::uint64_t memory_bytes);

}  // namespace espalier::table

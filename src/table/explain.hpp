// SPDX-License-Identifier: Apache-2.0
// What a pipeline does, in lines for people: one for each operator.
//
// Thread: safe, no state.
#pragma once

#include <string>
#include <vector>

#include "table/batch_program.hpp"

namespace espalier::table {

/// E.g. "scan, smart: 2 of 4 lines of a row", "filter: b < 9.95", "group by a: sum(b), count(*)",
/// "limit: 3", "pack: rows of 32 bytes".
[[nodiscard]] std::vector<std::string> explain(const BatchProgram& program);

}  // namespace espalier::table

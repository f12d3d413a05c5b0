// SPDX-License-Identifier: Apache-2.0
// Starts the benchmark program, espalier-bench.
#pragma once

#include <string>
#include <vector>

#include "cmdline/failure.hpp"

namespace espalier::tools {

/// Executes espalier-bench: the one in the folder of the running program, else the first in PATH.
/// Returns only on failure: the reason, and how to get it.
[[nodiscard]] cmdline::Failure start_bench_program(const std::vector<std::string>& arguments);

}  // namespace espalier::tools

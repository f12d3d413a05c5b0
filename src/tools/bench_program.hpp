// SPDX-License-Identifier: Apache-2.0
// The program of the benchmarks, espalier-bench, as the command starts it.
#pragma once

#include <string>
#include <vector>

#include "cmdline/failure.hpp"

namespace espalier::tools {

/// Becomes espalier-bench: the one in the folder of the program that runs, else the first in PATH.
/// Returns: only if it cannot be started, why, and how to get it.
[[nodiscard]] cmdline::Failure start_bench_program(const std::vector<std::string>& arguments);

}  // namespace espalier::tools

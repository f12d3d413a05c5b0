// SPDX-License-Identifier: Apache-2.0
// Shared code of the programs' main functions: their standard output, and the one place that
// catches exceptions.
#pragma once

#include <functional>
#include <iosfwd>
#include <string_view>

#include "cmdline/failure.hpp"

namespace espalier::cmdline {

/// Whether standard error is a terminal.
[[nodiscard]] bool err_is_terminal();

/// Opens standard descriptors that are closed, runs `work` with a buffered standard output, and
/// returns the process's exit code: that of `work`, or kFailed if it threw, or if its output could
/// not be written. A reader that goes away is no error.
[[nodiscard]] int run_process(
    std::string_view program,
    const std::function<int(std::ostream& out, const Messages& messages)>& work);

}  // namespace espalier::cmdline

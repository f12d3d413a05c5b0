// SPDX-License-Identifier: Apache-2.0
// What the main functions of programs share: their standard output, and the one place that catches
// exceptions.
#pragma once

#include <functional>
#include <iosfwd>
#include <string_view>

#include "cmdline/failure.hpp"

namespace espalier::cmdline {

/// Whether standard error is a terminal.
[[nodiscard]] bool err_is_terminal();

/// Opens the standard descriptors that are closed, runs `work` with a buffered standard output, and
/// returns the exit code of the process: that of `work`, or kFailed where it threw, or where its
/// output could not be written. A reader that goes away is no error.
[[nodiscard]] int run_process(
    std::string_view program,
    const std::function<int(std::ostream& out, const Messages& messages)>& work);

}  // namespace espalier::cmdline

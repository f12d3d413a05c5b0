// SPDX-License-Identifier: Apache-2.0
// The whole `espalier` command as a function of its arguments and its Environment.
#pragma once

#include <span>
#include <string>

#include "tools/environment.hpp"

namespace espalier::tools {

/// Runs the command with the given arguments, the program's name not among them. Returns the exit
/// code. Output that `out` did not take is not looked at: whoever owns the stream knows why.
[[nodiscard]] int run(std::span<const std::string> arguments, Environment& environment);

}  // namespace espalier::tools

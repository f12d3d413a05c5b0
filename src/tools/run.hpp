// SPDX-License-Identifier: Apache-2.0
// The whole `espalier` command as a function of its arguments and its Environment.
#pragma once

#include <span>
#include <string>

#include "tools/environment.hpp"

namespace espalier::tools {

/// Runs the command with the given arguments, without the program's name. Returns the exit code.
/// Errors of `out` are left to the owner of the stream.
[[nodiscard]] int run(std::span<const std::string> arguments, Environment& environment);

}  // namespace espalier::tools

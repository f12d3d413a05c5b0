// SPDX-License-Identifier: Apache-2.0
// The whole `espalier` command as a function of its arguments and its Environment.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "tools/environment.hpp"
#include "tools/options.hpp"

namespace espalier::tools {

/// Adds commands that live elsewhere to the parser (see commands.hpp for what they must do).
using Mount = std::function<void(CLI::App&, Environment&, Action&)>;

/// Runs the command with the given arguments, the program's name not among them. Returns the exit
/// code. Output that `out` did not take is not looked at: whoever owns the stream knows why.
[[nodiscard]] int run(std::span<const std::string> arguments, Environment& environment,
                      std::span<const Mount> mounts = {});

}  // namespace espalier::tools

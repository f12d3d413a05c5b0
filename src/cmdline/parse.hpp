// SPDX-License-Identifier: Apache-2.0
// Parses a command line, answers --help and --version, and corrects a wrong line; passes operands
// through the parser byte-exactly.
//
// The parser interprets empty arguments and ones in brackets or braces: "[a,b]" would become two
// keys, "{}" none. protect() marks such arguments with a NUL at their end, which no real argument
// can contain, and parse() removes it after the parser has split the line, before options check and
// store their values.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cmdline/failure.hpp"

namespace CLI {
class App;
}

namespace espalier::cmdline {

/// What the parsed command line asks for; returns an exit code.
using Action = std::function<int()>;

/// Parses `arguments`, the program's name not among them, by what `app` knows; options and
/// operands get their text as it was typed. "help scan" is "scan --help". Prints help, version and
/// mistakes. Changes `app`, so it parses once.
/// Returns: nothing when the line is right and the chosen command is to be run; else the exit code.
[[nodiscard]] std::optional<int> parse(CLI::App& app, std::span<const std::string> arguments,
                                       std::ostream& out, const Messages& messages);

/// Marks arguments for the parser.
[[nodiscard]] std::vector<std::string> protect(std::vector<std::string> arguments);
/// Removes the mark.
[[nodiscard]] std::string unprotect(std::string argument);

}  // namespace espalier::cmdline

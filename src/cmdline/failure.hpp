// SPDX-License-Identifier: Apache-2.0
// Exit codes and error messages of command-line programs.
#pragma once

#include <expected>
#include <iosfwd>
#include <string>
#include <string_view>

namespace espalier::cmdline {

/// Exit codes, the same for all commands.
inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;  ///< not found, bad data, an error of the world
inline constexpr int kUsage = 2;   ///< the command line itself is wrong

/// Why a command failed, in words for the user.
struct Failure {
  int exit_code = kFailed;
  std::string what;  ///< what failed, and why
  std::string hint;  ///< what to do about it; may be empty
};

template <class T>
using Outcome = std::expected<T, Failure>;

/// A Failure of the data or the world.
[[nodiscard]] std::unexpected<Failure> failed(std::string what, std::string hint = "");
/// A Failure of the command line.
[[nodiscard]] std::unexpected<Failure> misused(std::string what, std::string hint = "");

/// The name under which a program prints messages, and where.
struct Messages {
  std::string_view program;
  std::ostream& err;
  bool colour = false;
};

/// Prints `failure`, with its hint on a second line, and returns its exit code.
int print_failure(const Messages& messages, const Failure& failure);

/// Prints one line that begins with the program's name and a coloured label.
void print_note(const Messages& messages, std::string_view label, std::string_view text);

}  // namespace espalier::cmdline

// SPDX-License-Identifier: Apache-2.0
// What one run of the command sees of the world, and how it tells what went wrong.
//
// A command gets an Environment and returns an exit code; it opens, prints and measures through the
// Environment only. So tests and fuzzers run commands as plain functions (tools/run.hpp).
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "espalier/error.hpp"
#include "tools/files.hpp"

namespace espalier::tools {

/// Exit codes, the same for all commands.
inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;  ///< not found, bad data, an error of the world
inline constexpr int kUsage = 2;   ///< the command line itself is wrong

struct Environment {
  ByteSource& input;  ///< standard input
  std::ostream& out;
  std::ostream& err;
  Files& files;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool colour = false;  ///< of messages on `err`
  std::function<std::uint64_t()> now_ns;  ///< a clock that only goes forward
  /// Limit on the memory of a map unless the command line says otherwise; 0: the library's own.
  std::uint64_t memory_bytes_max = 0;
};

/// Why a command cannot go on, in words for the person at the keyboard.
struct Failure {
  int exit_code = kFailed;
  std::string what;  ///< what cannot be done, and why
  std::string hint;  ///< what to do about it; may be empty
};

template <class T>
using Outcome = std::expected<T, Failure>;

/// A Failure of the data or the world.
[[nodiscard]] std::unexpected<Failure> failed(std::string what, std::string hint = "");
/// A Failure of the command line.
[[nodiscard]] std::unexpected<Failure> misused(std::string what, std::string hint = "");

/// The system's words for an errno that an Error carries; the library's for other errors.
[[nodiscard]] std::string reason(const Error& error);

/// Prints `failure` on `err`, with its hint on a second line, and returns its exit code.
int print_failure(Environment& environment, const Failure& failure);

/// Prints one line on `err` that begins with the program's name and a coloured label.
void print_note(Environment& environment, std::string_view label, std::string_view text);

}  // namespace espalier::tools

// SPDX-License-Identifier: Apache-2.0
#include "cmdline/failure.hpp"

#include <fmt/format.h>

#include <ostream>
#include <utility>

namespace espalier::cmdline {
namespace {

constexpr std::string_view kBoldRed = "\x1b[1;31m";
constexpr std::string_view kBoldYellow = "\x1b[1;33m";
constexpr std::string_view kPlain = "\x1b[0m";

}  // namespace

std::unexpected<Failure> failed(std::string what, std::string hint) {
  return std::unexpected(Failure{kFailed, std::move(what), std::move(hint)});
}

std::unexpected<Failure> misused(std::string what, std::string hint) {
  return std::unexpected(Failure{kUsage, std::move(what), std::move(hint)});
}

int print_failure(const Messages& messages, const Failure& failure) {
  print_note(messages, "error", failure.what);
  if (!failure.hint.empty()) messages.err << "  " << failure.hint << '\n';
  return failure.exit_code;
}

void print_note(const Messages& messages, std::string_view label, std::string_view text) {
  const std::string_view colour = label == "error" ? kBoldRed : kBoldYellow;
  if (messages.colour) {
    messages.err << fmt::format("{}: {}{}:{} {}\n", messages.program, colour, label, kPlain, text);
  } else {
    messages.err << fmt::format("{}: {}: {}\n", messages.program, label, text);
  }
}

}  // namespace espalier::cmdline

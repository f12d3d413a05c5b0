// SPDX-License-Identifier: Apache-2.0
#include "tools/environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace espalier::tools {
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

Result<Store> Environment::refuse_to_connect(const std::string& /*address*/) {
  return fail(Code::unsupported);
}

Outcome<int> Environment::refuse_to_serve(Environment& /*environment*/,
                                          const node::Loaded& /*loaded*/) {
  return failed("no node can be started here");
}

Result<fabric::Listening> Environment::refuse_to_listen(
    const fabric::FabricAddress& /*address*/, std::shared_ptr<fabric::RegionTable> /*regions*/) {
  return fail(Code::unsupported);
}

Result<fabric::Connecting> Environment::refuse_to_reach(
    const fabric::FabricAddress& /*address*/, std::shared_ptr<fabric::RegionTable> /*regions*/,
    const std::optional<fabric::roce::IpAddress>& /*local*/) {
  return fail(Code::unsupported);
}

std::optional<std::string> variable(const Environment& environment, std::string_view name) {
  const auto found =
      std::ranges::find(environment.variables, name, &std::pair<std::string, std::string>::first);
  if (found == environment.variables.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::string reason(const Error& error) {
  if (error.code != Code::system) return message(error);
  return std::generic_category().message(static_cast<int>(error.detail));
}

int print_failure(Environment& environment, const Failure& failure) {
  print_note(environment, "error", failure.what);
  if (!failure.hint.empty()) environment.err << "  " << failure.hint << '\n';
  return failure.exit_code;
}

void print_note(Environment& environment, std::string_view label, std::string_view text) {
  const std::string_view colour = label == "error" ? kBoldRed : kBoldYellow;
  if (environment.colour) {
    environment.err << fmt::format("espalier: {}{}:{} {}\n", colour, label, kPlain, text);
  } else {
    environment.err << fmt::format("espalier: {}: {}\n", label, text);
  }
}

}  // namespace espalier::tools

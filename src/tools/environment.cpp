// SPDX-License-Identifier: Apache-2.0
#include "tools/environment.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace espalier::tools {

Result<Store> Environment::refuse_to_connect(const std::string& /*address*/,
                                             const StoreOptions& /*options*/) {
  return fail(Code::unsupported);
}

Outcome<int> Environment::refuse_to_serve(Environment& /*environment*/,
                                          const node::Loaded& /*loaded*/,
                                          const LoadAgain& /*load_again*/) {
  return failed("no node can be started here");
}

OpenedData Environment::refuse_to_open_data(const std::string& /*path*/) {
  return std::unexpected(node::DataMistake{"no data folder can be opened here", ""});
}

Failure Environment::refuse_to_start_bench(const std::vector<std::string>& /*arguments*/) {
  return {kFailed, "no benchmark can be started here", ""};
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

cmdline::Messages messages(Environment& environment) {
  return {"espalier", environment.err, environment.colour};
}

int print_failure(Environment& environment, const Failure& failure) {
  return cmdline::print_failure(messages(environment), failure);
}

void print_note(Environment& environment, std::string_view label, std::string_view text) {
  cmdline::print_note(messages(environment), label, text);
}

}  // namespace espalier::tools

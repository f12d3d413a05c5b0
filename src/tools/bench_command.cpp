// SPDX-License-Identifier: Apache-2.0
// espalier bench: starts the benchmarks, a program of their own, so that a machine that runs a node
// needs none of the stores that they compare with.
#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tools/commands.hpp"

namespace espalier::tools {

std::optional<std::vector<std::string>> bench_arguments(std::span<const std::string> arguments) {
  const bool help = !arguments.empty() && arguments.front() == "help";
  if (help) arguments = arguments.subspan(1);
  if (arguments.empty() || arguments.front() != "bench") return std::nullopt;
  std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (help) {
    if (rest.size() > 1) rest.resize(1);
    rest.emplace_back("--help");
  }
  return rest;
}

// Its place in the help and in what shells complete; run() looks at the words before the parser.
void add_bench_command(CLI::App& app, Environment& environment, Action& chosen) {
  CLI::App& command = *app.add_subcommand(
      "bench", "Measure the map, its peers and the machine: starts espalier-bench");
  command.callback([&environment, &chosen] {
    chosen = [&environment] { return print_failure(environment, environment.start_bench({})); };
  });
}

}  // namespace espalier::tools

// SPDX-License-Identifier: Apache-2.0
// The program `espalier-bench`.
#include <string>
#include <vector>

#include "bench/commands.hpp"
#include "cmdline/process.hpp"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return espalier::cmdline::run_process(
      "espalier-bench", [&](std::ostream& out, const espalier::cmdline::Messages& messages) {
        return espalier::bench::run(
            arguments, {out, messages.err, espalier::cmdline::err_is_terminal(), messages.colour});
      });
}

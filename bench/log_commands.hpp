// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/output.hpp"
#include "cmdline/parse.hpp"

namespace CLI {
class App;
}

namespace espalier::bench {

/// Adds `log | recovery | transaction`, as add_bench_commands().
void add_log_commands(CLI::App& app, const Output& output, cmdline::Action& chosen);

}  // namespace espalier::bench

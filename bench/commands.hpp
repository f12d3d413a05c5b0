// SPDX-License-Identifier: Apache-2.0
// The command-line interface of the benchmarks, `espalier-bench`.
#pragma once

#include <span>
#include <string>

#include "bench/output.hpp"
#include "cmdline/parse.hpp"

namespace CLI {
class App;
}

namespace espalier::bench {

/// Adds `ycsb | tree | memory | in-network | switch | place | one-sided | device | rings | rpc |
/// latency | sequencer | inference | fabric | log | recovery` to `app`. Parsing runs nothing: the
/// selected benchmark is put into `chosen`, and returns the exit code: 0, 1 (answers differ), 2
/// (wrong options). It throws std::exception when it cannot run. What `output` refers to must live
/// as long as `chosen`.
void add_bench_commands(CLI::App& app, const Output& output, cmdline::Action& chosen);

/// Runs the program with the given arguments, without its name. Returns the exit code. Errors:
/// throws std::exception when a benchmark cannot run.
[[nodiscard]] int run(std::span<const std::string> arguments, const Output& output);

}  // namespace espalier::bench

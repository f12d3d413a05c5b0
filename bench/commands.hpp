// SPDX-License-Identifier: Apache-2.0
// The command-line interface of the benchmarks.
#pragma once

#include <functional>

#include "bench/output.hpp"

namespace CLI {
class App;
}

namespace espalier::bench {

/// Adds `bench ycsb | tree | memory | rings | rpc | latency | fabric` to `app`. Parsing runs
/// nothing: a benchmark that was asked for is put into `chosen`, and returns the exit code: 0, 1
/// (answers differ), 2 (wrong options). It throws std::exception when it cannot run. What `output`
/// names must live as long as `chosen`.
void add_bench_commands(CLI::App& app, const Output& output, std::function<int()>& chosen);

}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
#include "bench/commands.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/benchmark.hpp"
#include "bench/run_device.hpp"
#include "bench/run_fabric.hpp"
#include "bench/run_hash.hpp"
#include "bench/run_in_network.hpp"
#include "bench/run_inference.hpp"
#include "bench/run_latency.hpp"
#include "bench/run_log.hpp"
#include "bench/run_memory.hpp"
#include "bench/run_one_sided.hpp"
#include "bench/run_place.hpp"
#include "bench/run_recovery.hpp"
#include "bench/run_rings.hpp"
#include "bench/run_rpc.hpp"
#include "bench/run_sequencer.hpp"
#include "bench/run_switch.hpp"
#include "bench/run_table.hpp"
#include "bench/run_transaction.hpp"
#include "bench/run_tree.hpp"
#include "bench/ycsb_options.hpp"
#include "cmdline/completion.hpp"

#ifndef ESPALIER_VERSION
#define ESPALIER_VERSION "unknown"
#endif

namespace espalier::bench {
namespace {

constexpr std::string_view kFooter =
    "Exit codes: 0 done; 1 answers differ, or a benchmark cannot run; 2 the command line is "
    "wrong.\n"
    "Examples:\n"
    "  espalier-bench ycsb --target embedded,absl --workload b --keys 1000000\n"
    "  espalier-bench ycsb --target node --node-address unix:/tmp/node.sock --json\n"
    "  espalier-bench tree --experiment scan-length\n"
    "  espalier-bench rpc --help\n";

}  // namespace

void add_bench_commands(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  app.require_subcommand(1);
  add_benchmark<YcsbOptions>(app, output, chosen);
  add_benchmark<TreeOptions>(app, output, chosen);
  add_benchmark<MemoryOptions>(app, output, chosen);
  add_benchmark<InNetworkOptions>(app, output, chosen);
  add_benchmark<SwitchRunOptions>(app, output, chosen);
  add_benchmark<PlaceOptions>(app, output, chosen);
  add_benchmark<OneSidedBenchOptions>(app, output, chosen);
  add_benchmark<DeviceBenchOptions>(app, output, chosen);
  add_benchmark<RingsOptions>(app, output, chosen);
  add_benchmark<RpcOptions>(app, output, chosen);
  add_benchmark<TableOptions>(app, output, chosen);
  add_benchmark<LatencyOptions>(app, output, chosen);
  add_benchmark<SequencerOptions>(app, output, chosen);
  add_benchmark<InferenceOptions>(app, output, chosen);
  add_benchmark<FabricOptions>(app, output, chosen);
  add_benchmark<HashBenchOptions>(app, output, chosen);
  add_benchmark<LogBenchOptions>(app, output, chosen);
  add_benchmark<RecoveryBenchOptions>(app, output, chosen);
  add_benchmark<TransactionBenchOptions>(app, output, chosen);
}

int run(std::span<const std::string> arguments, const Output& output) {
  CLI::App app("Measures Espalier's map, its peers and the machine", "espalier-bench");
  cmdline::Action chosen;
  app.set_version_flag("--version", "espalier-bench " ESPALIER_VERSION,
                       "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  add_bench_commands(app, output, chosen);
  cmdline::add_completion_command(app, output.out, chosen);
  app.footer(std::string(kFooter));  // last, for commands inherit what stands here before
  if (const auto ended = cmdline::parse(app, arguments, output.out, messages(output)))
    return *ended;
  return chosen ? chosen() : cmdline::kUsage;
}

}  // namespace espalier::bench

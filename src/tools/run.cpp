// SPDX-License-Identifier: Apache-2.0
#include "tools/run.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string_view>
#include <utility>

#include "cmdline/completion.hpp"
#include "cmdline/parse.hpp"
#include "tools/commands.hpp"
#include "tools/options.hpp"

#ifndef ESPALIER_VERSION
#define ESPALIER_VERSION "unknown"
#endif

namespace espalier::tools {
namespace {

constexpr std::string_view kFooter =
    "Commands work on an ordered map in memory that is filled from --file (lines, CSV, TSV or\n"
    "JSON lines), or on one that a node serves: --at ADDRESS, or ESPALIER_AT=ADDRESS.\n"
    "Exit codes: 0 done; 1 not found, or failed; 2 the command line is wrong.\n"
    "Examples:\n"
    "  espalier load /usr/share/dict/words\n"
    "  espalier scan --file /usr/share/dict/words --prefix trell\n"
    "  espalier get --file prices.csv apple\n"
    "  espalier put --file prices.csv apple 1.20\n"
    "  espalier serve --node-socket /tmp/node.sock\n"
    "  espalier get --at unix:/tmp/node.sock apple\n"
    "  espalier scan --help\n";

}  // namespace

void add_commands(CLI::App& app, Environment& environment, Action& chosen) {
  for (const auto add :
       {add_get_command,   add_scan_command,      add_put_command,    add_erase_command,
        add_load_command,  add_export_command,    add_check_command,  add_serve_command,
        add_list_command,  add_map_command,       add_shard_command,  add_table_command,
        add_seq_command,   add_embedding_command, add_secret_command, add_stats_command,
        add_top_command,   add_ping_command,      add_fabric_command, add_switch_command,
        add_bench_command, add_region_command,    add_log_command,    add_txn_command,
        add_chain_command}) {
    add(app, environment, chosen);
  }
  add_identity_options(app, environment.secret_file, environment.node_user);
  cmdline::add_completion_command(app, environment.out, chosen);
}

int run(std::span<const std::string> arguments, Environment& environment) {
  // The options of the benchmarks are known to their program alone.
  if (auto benchmark = bench_arguments(arguments)) {
    return print_failure(environment, environment.start_bench(std::move(*benchmark)));
  }
  CLI::App app("Espalier: an ordered map in memory, as a command", "espalier");
  Action chosen;
  app.set_version_flag("--version", "espalier " ESPALIER_VERSION, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(1);
  add_commands(app, environment, chosen);
  app.footer(std::string(kFooter));  // last, for commands inherit what stands here before
  if (const auto ended = cmdline::parse(app, arguments, environment.out, messages(environment))) {
    return *ended;
  }
  return chosen ? chosen() : kUsage;
}

}  // namespace espalier::tools

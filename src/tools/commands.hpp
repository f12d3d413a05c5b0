// SPDX-License-Identifier: Apache-2.0
// The commands, one function each, which adds the command's options to the parser. When the parser
// meets a command, it stores the action in `chosen`; nothing runs while parsing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/environment.hpp"
#include "tools/options.hpp"

namespace CLI {
class App;
}

namespace espalier::tools {

void add_get_command(CLI::App& app, Environment& environment, Action& chosen);
void add_scan_command(CLI::App& app, Environment& environment, Action& chosen);
void add_put_command(CLI::App& app, Environment& environment, Action& chosen);
void add_erase_command(CLI::App& app, Environment& environment, Action& chosen);
void add_load_command(CLI::App& app, Environment& environment, Action& chosen);
void add_export_command(CLI::App& app, Environment& environment, Action& chosen);
void add_check_command(CLI::App& app, Environment& environment, Action& chosen);
void add_serve_command(CLI::App& app, Environment& environment, Action& chosen);
void add_list_command(CLI::App& app, Environment& environment, Action& chosen);
void add_map_command(CLI::App& app, Environment& environment, Action& chosen);
void add_shard_command(CLI::App& app, Environment& environment, Action& chosen);
void add_secret_command(CLI::App& app, Environment& environment, Action& chosen);
void add_stats_command(CLI::App& app, Environment& environment, Action& chosen);
void add_top_command(CLI::App& app, Environment& environment, Action& chosen);
void add_ping_command(CLI::App& app, Environment& environment, Action& chosen);
void add_fabric_command(CLI::App& app, Environment& environment, Action& chosen);
void add_switch_command(CLI::App& app, Environment& environment, Action& chosen);
void add_table_command(CLI::App& app, Environment& environment, Action& chosen);
void add_seq_command(CLI::App& app, Environment& environment, Action& chosen);
void add_region_command(CLI::App& app, Environment& environment, Action& chosen);
void add_chain_command(CLI::App& app, Environment& environment, Action& chosen);
void add_embedding_command(CLI::App& app, Environment& environment, Action& chosen);
void add_txn_command(CLI::App& app, Environment& environment, Action& chosen);
void add_log_command(CLI::App& app, Environment& environment, Action& chosen);
void add_bench_command(CLI::App& app, Environment& environment, Action& chosen);

/// All of the above, and `completion`.
void add_commands(CLI::App& app, Environment& environment, Action& chosen);

/// Arguments of `espalier bench ...` or `espalier help bench ...` for the benchmark program;
/// nullopt for another command.
[[nodiscard]] std::optional<std::vector<std::string>> bench_arguments(
    std::span<const std::string> arguments);

/// Commands of `table` in files of their own.
void add_table_load(CLI::App& table, Environment& environment, Action& chosen);
void add_table_query(CLI::App& table, Environment& environment, Action& chosen);
void add_table_export(CLI::App& table, Environment& environment, Action& chosen);

/// Commands of `switch` in other files.
void add_switch_controller(CLI::App& above, Environment& environment, Action& chosen);
void add_switch_resources(CLI::App& above, Environment& environment, Action& chosen);
void add_switch_entries(CLI::App& above, Environment& environment, Action& chosen);

/// The commands of `fabric`.
void add_fabric_serve(CLI::App& fabric, Environment& environment, Action& chosen);
void add_fabric_ping(CLI::App& fabric, Environment& environment, Action& chosen);

}  // namespace espalier::tools

// SPDX-License-Identifier: Apache-2.0
// The commands, one function each, that add a command's options to the parser. A command that the
// parser meets puts what is to be done into `chosen`; nothing is done while parsing.
#pragma once

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
void add_map_command(CLI::App& app, Environment& environment, Action& chosen);
void add_stats_command(CLI::App& app, Environment& environment, Action& chosen);
void add_top_command(CLI::App& app, Environment& environment, Action& chosen);
void add_ping_command(CLI::App& app, Environment& environment, Action& chosen);
void add_fabric_command(CLI::App& app, Environment& environment, Action& chosen);
void add_completion_command(CLI::App& app, Environment& environment, Action& chosen);

/// All of the above.
void add_commands(CLI::App& app, Environment& environment, Action& chosen);

/// The commands of `fabric`.
void add_fabric_serve(CLI::App& fabric, Environment& environment, Action& chosen);
void add_fabric_ping(CLI::App& fabric, Environment& environment, Action& chosen);

}  // namespace espalier::tools

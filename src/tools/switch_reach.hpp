// SPDX-License-Identifier: Apache-2.0
// Shared code of the commands of `espalier switch`: access to a switch at its control socket, and
// tables from a file.
//
// Thread: any.
#pragma once

#include <string>
#include <vector>

#include "dataplane/control_client.hpp"
#include "dataplane/switch_program.hpp"
#include "tools/environment.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace espalier::tools {

/// A socket on which the command cannot listen.
std::unexpected<Failure> cannot_serve(const std::string& path, const Error& error);

Outcome<dataplane::ControlClient> reach_switch(const std::string& path);
/// The action that the switch did not perform.
std::unexpected<Failure> did_not(const dataplane::ControlClient& client, const std::string& path);

/// Contents of a file, of at most kControlBytesMax.
Outcome<std::string> text_of_file(Environment& environment, const std::string& path);

/// Source of tables: exactly one is set.
struct TablesFrom {
  std::string file;
  std::string control;
};
/// FILE and --control.
void add_tables_from(CLI::App& command, TablesFrom& into);
Outcome<dataplane::SwitchProgram> program_from(Environment& environment, const TablesFrom& from);

CLI::Option* add_path(CLI::App& command, const std::string& name, const std::string& what,
                      std::string& into);
/// The same, once or several times.
void add_paths(CLI::App& command, const std::string& name, const std::string& what,
               std::vector<std::string>& into);
void add_control(CLI::App& command, std::string& into);

}  // namespace espalier::tools

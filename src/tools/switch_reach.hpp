// SPDX-License-Identifier: Apache-2.0
// What the commands of `espalier switch` share: reaching a switch at the socket of its control, and
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

/// A socket at which nothing can be served.
std::unexpected<Failure> cannot_serve(const std::string& path, const Error& error);

Outcome<dataplane::ControlClient> reach_switch(const std::string& path);
/// What it has not done.
std::unexpected<Failure> did_not(const dataplane::ControlClient& client, const std::string& path);

/// All of a file, of at most kControlBytesMax.
Outcome<std::string> text_of_file(Environment& environment, const std::string& path);

/// Where tables come from: one of both is there.
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

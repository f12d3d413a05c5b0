// SPDX-License-Identifier: Apache-2.0
// Shell completion scripts, generated from the parser's own commands and options, so that they
// cannot differ from the parser.
//
// All three work alike: the words before the cursor determine the command ("map create"); then come
// its options, its commands, files, or the values of the option just typed.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "cmdline/parse.hpp"

namespace CLI {
class App;
}

namespace espalier::cmdline {

/// An option of a command, for a shell.
struct OptionWords {
  std::vector<std::string> names;  ///< "-f", "--file"
  std::string description;
  bool takes_value = false;
  bool takes_file = false;
  std::vector<std::string> values;  ///< all that it takes, where these are few
};

/// A command; the program itself has an empty path.
struct CommandWords {
  std::string path;  ///< " map create": each word with a blank before it
  std::string name;
  std::string description;
  std::vector<CommandWords> commands;
  std::vector<OptionWords> options;
  std::vector<std::string> operands;  ///< all that it takes, where these are few
  bool takes_files = false;           ///< as operands
};

/// The parser's commands.
[[nodiscard]] CommandWords command_words(const CLI::App& app);

[[nodiscard]] std::string bash_completion(const CommandWords& program);
[[nodiscard]] std::string zsh_completion(const CommandWords& program);
[[nodiscard]] std::string fish_completion(const CommandWords& program);

/// Adds `completion bash | zsh | fish`, which prints one of them for the whole of `app` to `out`.
/// Requires: `app` and `out` live as long as `chosen`.
void add_completion_command(CLI::App& app, std::ostream& out, Action& chosen);

}  // namespace espalier::cmdline

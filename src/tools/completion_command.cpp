// SPDX-License-Identifier: Apache-2.0
// espalier completion: prints a script that completes the command in a shell.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "tools/commands.hpp"
#include "tools/completion.hpp"

namespace espalier::tools {

void add_completion_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto shell = std::make_shared<std::string>();
  CLI::App& command =
      *app.add_subcommand("completion", "Print a script that completes this command in a shell");
  command.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""))
      ->type_name("bash|zsh|fish");
  command.footer(
      "Examples:\n"
      "  source <(espalier completion bash)\n"
      "  espalier completion zsh > ~/.zfunc/_espalier      a folder of $fpath\n"
      "  espalier completion fish > ~/.config/fish/completions/espalier.fish\n");
  command.callback([shell, &app, &environment, &chosen] {
    chosen = [shell, &app, &environment] {
      const CommandWords program = command_words(app);
      environment.out << (*shell == "bash"  ? bash_completion(program)
                          : *shell == "zsh" ? zsh_completion(program)
                                            : fish_completion(program));
      return kOk;
    };
  });
}

}  // namespace espalier::tools

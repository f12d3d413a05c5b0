// SPDX-License-Identifier: Apache-2.0
// completion: prints a script that completes the program in a shell.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cmdline/completion.hpp"

namespace espalier::cmdline {

void add_completion_command(CLI::App& app, std::ostream& out, Action& chosen) {
  const auto shell = std::make_shared<std::string>();
  CLI::App& command =
      *app.add_subcommand("completion", "Print a script that completes this command in a shell");
  command.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""))
      ->type_name("bash|zsh|fish");
  command.footer(
      fmt::format("Examples:\n"
                  "  source <({0} completion bash)\n"
                  "  {0} completion zsh > ~/.zfunc/_{0}      a folder of $fpath\n"
                  "  {0} completion fish > ~/.config/fish/completions/{0}.fish\n",
                  app.get_name()));
  command.callback([shell, &app, &out, &chosen] {
    chosen = [shell, &app, &out] {
      const CommandWords program = command_words(app);
      out << (*shell == "bash"  ? bash_completion(program)
              : *shell == "zsh" ? zsh_completion(program)
                                : fish_completion(program));
      return kOk;
    };
  });
}

}  // namespace espalier::cmdline

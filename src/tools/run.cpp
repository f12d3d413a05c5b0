// SPDX-License-Identifier: Apache-2.0
#include "tools/run.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>
#include <vector>

#include "base/nearest.hpp"
#include "tools/commands.hpp"

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

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// The command that was being parsed when parsing ended: the innermost one.
const CLI::App& innermost(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return *at;
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

/// Marks of protect() do not belong in messages.
std::string without_marks(std::string text) {
  std::erase(text, '\0');
  return text;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& names) {
  const std::string guess = base::nearest(word, names);
  return guess.empty() ? "" : fmt::format("Did you mean {}? ", guess);
}

/// An argument that the parser had no place for.
Failure unexpected_argument(const CLI::App& command) {
  const std::vector<std::string> extras = command.remaining(true);
  const std::string extra = extras.empty() ? "" : without_marks(extras.front());
  const std::string shown = encode(extra, Encoding::escaped);
  const std::string help = fmt::format("See {} --help.", full_name(command));
  if (extra.size() < 2 || extra.front() != '-') {
    const std::vector<std::string> names = command_names(command);
    if (!names.empty()) {
      return {kUsage, fmt::format("there is no command '{} {}'", full_name(command), shown),
              did_you_mean(extra, names) + help};
    }
    return {kUsage, fmt::format("there is no place for argument '{}'", shown), help};
  }
  std::string hint = did_you_mean(extra.substr(0, extra.find('=')), option_names(command));
  if (hint.empty()) hint = "To pass a key or value that begins with -, put -- before it. ";
  return {kUsage, fmt::format("unknown option '{}'", shown), hint + help};
}

Failure parse_failure(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = innermost(app);
  const auto is = [&](CLI::ExitCodes code) {
    return error.get_exit_code() == static_cast<int>(code);
  };
  // A mistyped option also leaves its command without what it needs; the option is the news.
  const bool extras = !command.remaining(true).empty();
  if (is(CLI::ExitCodes::ExtrasError) || (is(CLI::ExitCodes::RequiredError) && extras)) {
    return unexpected_argument(command);
  }
  return {kUsage, without_marks(error.what()), fmt::format("See {} --help.", full_name(command))};
}

/// The first argument is a command, an option, or a mistake that deserves a better word than the
/// parser has for it.
Outcome<void> check_command_name(CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    return misused("which command?", "See espalier --help.");
  }
  const std::string word = without_marks(arguments.front());
  const std::vector<std::string> names = command_names(app);
  if (word.starts_with('-') || std::ranges::find(names, word) != names.end()) return {};
  return misused(fmt::format("there is no command '{}'", encode(word, Encoding::escaped)),
                 did_you_mean(word, names) + "See espalier --help.");
}

/// "espalier help scan" is "espalier scan --help".
void rewrite_help(std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front() != "help") return;
  arguments.erase(arguments.begin());
  arguments.resize(std::min<std::size_t>(arguments.size(), 2));
  arguments.push_back("--help");
}

}  // namespace

void add_commands(CLI::App& app, Environment& environment, Action& chosen) {
  for (const auto add : {add_get_command, add_scan_command, add_put_command, add_erase_command,
                         add_load_command, add_export_command, add_check_command, add_serve_command,
                         add_map_command, add_stats_command, add_top_command, add_ping_command,
                         add_fabric_command, add_completion_command}) {
    add(app, environment, chosen);
  }
}

int run(std::span<const std::string> arguments, Environment& environment,
        std::span<const Mount> mounts) {
  CLI::App app("Espalier: an ordered map in memory, as a command", "espalier");
  Action chosen;
  app.set_version_flag("--version", "espalier " ESPALIER_VERSION, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(1);
  add_commands(app, environment, chosen);
  for (const Mount& mount : mounts) mount(app, environment, chosen);
  app.footer(std::string(kFooter));  // last, for commands inherit what stands here before

  std::vector<std::string> words(arguments.begin(), arguments.end());
  rewrite_help(words);
  words = protect(std::move(words));
  if (auto checked = check_command_name(app, words); !checked) {
    return print_failure(environment, checked.error());
  }
  std::ranges::reverse(words);  // the parser takes them from the back
  try {
    app.parse(words);
  } catch (const CLI::Success& success) {  // --help, --version
    app.exit(success, environment.out, environment.err);
    return kOk;
  } catch (const CLI::ParseError& error) {  // how this parser says that it refuses
    return print_failure(environment, parse_failure(app, error));
  }
  return chosen ? chosen() : kUsage;
}

}  // namespace espalier::tools

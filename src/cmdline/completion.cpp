// SPDX-License-Identifier: Apache-2.0
#include "cmdline/completion.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

namespace espalier::cmdline {
namespace {

/// "csv|tsv" are words to type; "SIZE|PERCENT" are kinds of words.
std::vector<std::string> values_of(const std::string& type) {
  std::vector<std::string> values;
  const bool words = type.contains('|') && std::ranges::none_of(type, [](char c) {
                       return (c >= 'A' && c <= 'Z') || c == ' ' || c == '{' || c == ':';
                     });
  if (!words) return values;
  for (std::size_t at = 0; at <= type.size();) {
    const std::size_t end = std::min(type.find('|', at), type.size());
    values.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return values;
}

OptionWords option_words(const CLI::Option& option) {
  OptionWords words;
  for (const std::string& name : option.get_snames()) words.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) words.names.push_back("--" + name);
  words.description = option.get_description();
  words.takes_value = option.get_items_expected_max() > 0;
  const std::string type = words.takes_value ? option.get_type_name() : "";
  words.takes_file = type == "FILE" || type == "PATH";
  words.values = values_of(type);
  return words;
}

CommandWords words_of(const CLI::App& app, std::string path) {
  CommandWords command;
  command.path = std::move(path);
  command.name = app.get_name();
  command.description = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_snames().empty() && option->get_lnames().empty()) {
      command.takes_files |= option->get_name() == "FILE";
      for (std::string& value : values_of(option->get_type_name())) {
        command.operands.push_back(std::move(value));
      }
    } else {
      command.options.push_back(option_words(*option));
    }
  }
  for (const CLI::App* child : app.get_subcommands(nullptr)) {
    command.commands.push_back(words_of(*child, command.path + " " + child->get_name()));
  }
  return command;
}

void for_each(const CommandWords& command, const std::function<void(const CommandWords&)>& work) {
  work(command);
  for (const CommandWords& child : command.commands) for_each(child, work);
}

/// Single quotes, as all three shells understand them but for what stands for a quote itself.
std::string in_quotes(std::string_view text, std::string_view quote = "'\\''") {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += quote;
    } else {
      result += c;
    }
  }
  return result + "'";
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  return fmt::format("{}", fmt::join(words, between));
}

/// The paths of all commands below the program, as the patterns of a case.
std::vector<std::string> paths(const CommandWords& program) {
  std::vector<std::string> result;
  for_each(program, [&](const CommandWords& command) {
    if (!command.path.empty()) result.push_back(in_quotes(command.path));
  });
  return result;
}

/// What stands before the cursor, as patterns of a case, of all options that `wanted` picks.
std::vector<std::string> patterns(const CommandWords& program,
                                  const std::function<bool(const OptionWords&)>& wanted) {
  std::vector<std::string> result;
  for_each(program, [&](const CommandWords& command) {
    for (const OptionWords& option : command.options) {
      if (!option.takes_value || !wanted(option)) continue;
      for (const std::string& name : option.names) {
        result.push_back(in_quotes(command.path + " " + name));
      }
    }
  });
  return result;
}

/// A branch for each option whose values are known, one for options that take files, and one for
/// all others that take something. The same in bash and zsh but for what they do.
std::string value_cases(const CommandWords& program, std::string_view offer,
                        std::string_view offer_files) {
  std::string text;
  for_each(program, [&](const CommandWords& command) {
    for (const OptionWords& option : command.options) {
      if (option.values.empty()) continue;
      std::vector<std::string> names;
      for (const std::string& name : option.names) {
        names.push_back(in_quotes(command.path + " " + name));
      }
      text += fmt::format("    {})\n      {}\n      return ;;\n", joined(names, " | "),
                          fmt::format(fmt::runtime(offer), joined(option.values, " ")));
    }
  });
  const auto files = patterns(program, [](const OptionWords& o) { return o.takes_file; });
  if (!files.empty()) {
    text += fmt::format("    {})\n      {}\n      return ;;\n", joined(files, " | \\\n    "),
                        offer_files);
  }
  const auto others =
      patterns(program, [](const OptionWords& o) { return !o.takes_file && o.values.empty(); });
  if (!others.empty()) {
    text += fmt::format("    {})\n      return ;;\n", joined(others, " | \\\n    "));
  }
  return text;
}

/// "name:description", as zsh describes words.
std::string described(const std::string& name, const std::string& description) {
  std::string plain;
  for (const char c : name) plain += c == ':' ? std::string("\\:") : std::string(1, c);
  return in_quotes(plain + ":" + description);
}

}  // namespace

CommandWords command_words(const CLI::App& app) { return words_of(app, ""); }

std::string bash_completion(const CommandWords& program) {
  std::string text = fmt::format(
      "# Completion of {0} for bash. In ~/.bashrc: source <({0} completion bash)\n"
      "_{0}() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} at='' i commands='' options='' files=''\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \"$at ${{COMP_WORDS[i]}}\" in\n"
      "    {1}) at=\"$at ${{COMP_WORDS[i]}}\" ;;\n"
      "    esac\n"
      "  done\n"
      "  COMPREPLY=()\n"
      "  case \"$at ${{COMP_WORDS[COMP_CWORD - 1]}}\" in\n",
      program.name, joined(paths(program), " | \\\n    "));
  text += value_cases(program, "mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$current\")",
                      "compopt -o filenames\n"
                      "      mapfile -t COMPREPLY < <(compgen -f -- \"$current\")");
  text += "  esac\n  case \"$at\" in\n";
  for_each(program, [&](const CommandWords& command) {
    std::vector<std::string> commands;
    std::vector<std::string> options;
    for (const CommandWords& child : command.commands) commands.push_back(child.name);
    for (const std::string& operand : command.operands) commands.push_back(operand);
    for (const OptionWords& option : command.options) {
      options.insert(options.end(), option.names.begin(), option.names.end());
    }
    text += fmt::format("    {})\n      commands={}\n      options={}\n      files={} ;;\n",
                        in_quotes(command.path), in_quotes(joined(commands, " ")),
                        in_quotes(joined(options, " ")), command.takes_files ? "yes" : "''");
  });
  text += fmt::format(
      "  esac\n"
      "  if [[ $current == -* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n"
      "  elif [[ $files ]]; then\n"
      "    compopt -o filenames\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
      "  else\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$current\")\n"
      "  fi\n"
      "}}\n"
      "complete -F _{0} {0}\n",
      program.name);
  return text;
}

std::string zsh_completion(const CommandWords& program) {
  std::string text = fmt::format(
      "#compdef {0}\n"
      "# Completion of {0} for zsh. Into a folder of $fpath: {0} completion zsh > _{0}\n"
      "_{0}() {{\n"
      "  local at='' i files=''\n"
      "  local -a commands options\n"
      "  for ((i = 2; i < CURRENT; i++)); do\n"
      "    case \"$at ${{words[i]}}\" in\n"
      "    {1}) at=\"$at ${{words[i]}}\" ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$at ${{words[CURRENT - 1]}}\" in\n",
      program.name, joined(paths(program), " | \\\n    "));
  text += value_cases(program, "compadd -- {}", "_files");
  text += "  esac\n  case \"$at\" in\n";
  for_each(program, [&](const CommandWords& command) {
    text += fmt::format("    {})\n      commands=(\n", in_quotes(command.path));
    for (const CommandWords& child : command.commands) {
      text += fmt::format("        {}\n", described(child.name, child.description));
    }
    for (const std::string& operand : command.operands) {
      text += fmt::format("        {}\n", in_quotes(operand));
    }
    text += "      )\n      options=(\n";
    for (const OptionWords& option : command.options) {
      for (const std::string& name : option.names) {
        text += fmt::format("        {}\n", described(name, option.description));
      }
    }
    text += fmt::format("      )\n      files={} ;;\n", command.takes_files ? "yes" : "''");
  });
  text += fmt::format(
      "  esac\n"
      "  if [[ ${{words[CURRENT]}} == -* ]]; then\n"
      "    _describe -o option options\n"
      "  elif [[ -n $files ]]; then\n"
      "    _files\n"
      "  elif (( $#commands )); then\n"
      "    _describe command commands\n"
      "  fi\n"
      "}}\n"
      "if [[ ${{funcstack[1]}} == _{0} ]]; then\n"
      "  _{0} \"$@\"\n"
      "else\n"
      "  compdef _{0} {0}\n"
      "fi\n",
      program.name);
  return text;
}

std::string fish_completion(const CommandWords& program) {
  constexpr std::string_view kQuote = "\\'";
  std::string text = fmt::format(
      "# Completion of {0} for fish. {0} completion fish > ~/.config/fish/completions/{0}.fish\n"
      "function __{0}_at\n"
      "    set -l at ''\n"
      "    for word in (commandline -opc)[2..-1]\n"
      "        switch \"$at $word\"\n"
      "            case {1}\n"
      "                set at \"$at $word\"\n"
      "        end\n"
      "    end\n"
      "    test \"$at\" = \"$argv[1]\"\n"
      "end\n"
      "complete -c {0} -f\n",
      program.name, joined(paths(program), " "));
  for_each(program, [&](const CommandWords& command) {
    const std::string begin =
        fmt::format("complete -c {0} -n \"__{0}_at '{1}'\"", program.name, command.path);
    for (const CommandWords& child : command.commands) {
      text +=
          fmt::format("{} -a {} -d {}\n", begin, child.name, in_quotes(child.description, kQuote));
    }
    for (const OptionWords& option : command.options) {
      text += begin;
      for (const std::string& name : option.names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option.values.empty()) {
        text += " -x -a " + in_quotes(joined(option.values, " "), kQuote);
      } else if (option.takes_file) {
        text += " -r -F";
      } else if (option.takes_value) {
        text += " -x";
      }
      text += fmt::format(" -d {}\n", in_quotes(option.description, kQuote));
    }
    if (!command.operands.empty()) {
      text += fmt::format("{} -a {}\n", begin, in_quotes(joined(command.operands, " "), kQuote));
    }
    if (command.takes_files) text += begin + " -F\n";
  });
  return text;
}

}  // namespace espalier::cmdline

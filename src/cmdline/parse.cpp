// SPDX-License-Identifier: Apache-2.0
#include "cmdline/parse.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "base/nearest.hpp"
#include "cmdline/text_codec.hpp"

namespace espalier::cmdline {
namespace {

constexpr char kMark = '\0';

bool needs_mark(std::string_view argument) {
  return argument.empty() || std::string_view("[{%").contains(argument.front());
}

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

/// What the parser itself converts are switches; numbers are converted in number_option.hpp.
std::string not_converted(std::string text) {
  constexpr std::string_view kBegin = "Could not convert: ";
  if (text.starts_with(kBegin)) text.erase(0, kBegin.size());
  return text + ": this option takes no value, or true or false";
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
  if (is(CLI::ExitCodes::ConversionError)) {
    return {kUsage, not_converted(without_marks(error.what())),
            fmt::format("See {} --help.", full_name(command))};
  }
  return {kUsage, without_marks(error.what()), fmt::format("See {} --help.", full_name(command))};
}

/// The first argument is a command, an option, or a mistake that deserves a better word than the
/// parser has for it.
Outcome<void> check_command_name(CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    return misused("which command?", fmt::format("See {} --help.", app.get_name()));
  }
  const std::string word = without_marks(arguments.front());
  const std::vector<std::string> names = command_names(app);
  if (word.starts_with('-') || std::ranges::find(names, word) != names.end()) return {};
  return misused(fmt::format("there is no command '{}'", encode(word, Encoding::escaped)),
                 did_you_mean(word, names) + fmt::format("See {} --help.", app.get_name()));
}

/// Takes the marks off what options are given, before anything looks at it.
void take_marks_off(CLI::App& app) {
  const std::function<std::string(std::string)> take_off = unprotect;
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() > 0) option->transform(take_off);
  }
  for (CLI::App* command : app.get_subcommands({})) take_marks_off(*command);
}

/// "espalier help scan" is "espalier scan --help".
void rewrite_help(std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front() != "help") return;
  arguments.erase(arguments.begin());
  arguments.resize(std::min<std::size_t>(arguments.size(), 2));
  arguments.push_back("--help");
}

}  // namespace

std::optional<int> parse(CLI::App& app, std::span<const std::string> arguments, std::ostream& out,
                         const Messages& messages) {
  std::vector<std::string> words(arguments.begin(), arguments.end());
  rewrite_help(words);
  words = protect(std::move(words));
  if (auto checked = check_command_name(app, words); !checked) {
    return print_failure(messages, checked.error());
  }
  take_marks_off(app);
  std::ranges::reverse(words);  // the parser takes them from the back
  try {
    app.parse(words);
  } catch (const CLI::Success& success) {  // --help, --version
    app.exit(success, out, messages.err);
    return kOk;
  } catch (const CLI::ParseError& error) {  // how this parser says that it refuses
    return print_failure(messages, parse_failure(app, error));
  }
  return std::nullopt;
}

std::vector<std::string> protect(std::vector<std::string> arguments) {
  std::vector<std::string> result;
  bool options_over = false;
  for (std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    if (argument == "--") options_over = true;
    if (needs_mark(argument)) {
      result.push_back(argument + kMark);
    } else if (!options_over && argument.starts_with("--") && equals != std::string::npos &&
               needs_mark(std::string_view(argument).substr(equals + 1))) {
      result.push_back(argument.substr(0, equals));
      result.push_back(argument.substr(equals + 1) + kMark);
    } else {
      result.push_back(std::move(argument));
    }
  }
  return result;
}

std::string unprotect(std::string argument) {
  if (argument.ends_with(kMark)) argument.pop_back();
  return argument;
}

}  // namespace espalier::cmdline

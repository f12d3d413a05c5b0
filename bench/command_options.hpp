// SPDX-License-Identifier: Apache-2.0
// Options with names and comma-separated lists, and the selection of a run.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "bench/output.hpp"
#include "cmdline/parse.hpp"

namespace espalier::bench {

[[nodiscard]] inline CLI::ValidationError not_one_of(const std::string& flag,
                                                     const std::string& text,
                                                     const std::string& names) {
  return CLI::ValidationError(flag, fmt::format("'{}' is not one of: {}", text, names));
}

// An option whose value is one of some names. `to` may be an optional.
template <class To, class Parse>
CLI::Option* add_choice(CLI::App& command, const std::string& flag, To& to, Parse parse,
                        const std::string& help) {
  return command.add_option_function<std::string>(
      flag,
      [flag, &to, parse, help](const std::string& text) {
        const auto value = parse(text);
        if (!value) throw not_one_of(flag, text, help);
        to = *value;
      },
      help);
}

// The same for a list with commas; `to` is a vector.
template <class To, class Parse>
CLI::Option* add_choices(CLI::App& command, const std::string& flag, std::vector<To>& to,
                         Parse parse, const std::string& help) {
  return command
      .add_option_function<std::vector<std::string>>(
          flag,
          [flag, &to, parse, help](const std::vector<std::string>& texts) {
            to.clear();
            for (const std::string& text : texts) {
              const auto value = parse(text);
              if (!value) throw not_one_of(flag, text, help);
              to.push_back(*value);
            }
          },
          help)
      ->delimiter(',')
      ->allow_extra_args(false);
}

// A list with commas; without the flag `to` stays as it is.
template <class To>
void add_list(CLI::App& command, const char* flag, std::vector<To>& to, const std::string& help) {
  command.add_option(flag, to, help)->delimiter(',')->allow_extra_args(false);
}

[[nodiscard]] inline cmdline::Messages messages(const Output& output) {
  return {"espalier-bench", output.err, output.colour};
}

// Puts the run of `options` into `chosen` when the command is parsed.
template <class Options, class Run>
void choose(CLI::App& command, const std::shared_ptr<Options>& options, const Output& output,
            cmdline::Action& chosen, Run run) {
  command.callback([options, output, &chosen, run] {
    chosen = [options, output, run] {
      if (const auto problem = problem_of(*options)) {
        return cmdline::print_failure(messages(output), {cmdline::kUsage, *problem, ""});
      }
      return run(*options, output);
    };
  });
}

}  // namespace espalier::bench

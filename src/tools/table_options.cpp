// SPDX-License-Identifier: Apache-2.0
#include "tools/table_options.hpp"

#include <CLI/CLI.hpp>

#include "cmdline/number_option.hpp"

namespace espalier::tools {

void add_csv_flags(CLI::App& command, CsvFlags& flags, CsvUse use) {
  command.add_option("--delimiter", flags.delimiter, "Between fields: a character, or tab")
      ->default_str(",")
      ->group("CSV");
  command
      .add_option("--null", flags.null_text,
                  "Text that means null where it is not in quotes (default: none at all)")
      ->group("CSV");
  command.add_flag("--no-header", flags.no_header, "No line of column names")->group("CSV");
  if (use == CsvUse::reading) {
    cmdline::add_number(command, "--skip-bad", flags.skip_bad, "Bad lines that may be left out")
        ->group("CSV");
  }
}

void add_one_sided_flag(CLI::App& command, Access& access) {
  command.add_flag_callback(
      "--one-sided", [&access] { access = Access::one_sided; },
      "Read rows out of the node's memory instead of asking the node (shm: and roce: addresses)");
}

Outcome<table::CsvOptions> csv_options(const CsvFlags& flags) {
  table::CsvOptions options;
  const std::string separator = flags.delimiter == "tab" ? "\t" : flags.delimiter;
  if (separator.size() != 1) {
    return misused("--delimiter '" + flags.delimiter + "' is not one character",
                   "For example --delimiter ';' or --delimiter tab.");
  }
  options.separator = separator.front();
  options.header = !flags.no_header;
  options.null_text = flags.null_text;
  options.skip_bad = flags.skip_bad;
  if (const std::string wrong = table::wrong_with(options); !wrong.empty()) return misused(wrong);
  return options;
}

}  // namespace espalier::tools

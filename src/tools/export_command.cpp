// SPDX-License-Identifier: Apache-2.0
// espalier export: a whole map as text, one record per key; sorted, but of a hash map.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <variant>

#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/save.hpp"

namespace espalier::tools {
namespace {

struct ExportMapOptions {
  SourceOptions source;
  std::string to;
  std::string output = "-";
  bool json = false;
};

/// The format to write: what --to says, else what the output's name asks for, else TSV, or plain
/// lines where there are only keys.
Format output_format(const ExportMapOptions& options, bool has_values) {
  for (const Format format : {Format::lines, Format::csv, Format::tsv, Format::json_lines}) {
    if (options.to == name(format)) return format;
  }
  if (options.json) return Format::json_lines;
  return format_of_name(options.output).value_or(has_values ? Format::tsv : Format::lines);
}

Outcome<int> export_map(Environment& environment, const ExportMapOptions& options) {
  if (auto checked = check_source(environment, options.source); !checked) {
    return std::unexpected(checked.error());
  }
  const auto data = open_any_data(environment, options.source);
  if (!data) return std::unexpected(data.error());
  const SaveOptions save_options{output_format(options, data->has_values),
                                 options.source.reader.separator, ""};
  const std::string& output = options.output;
  const auto saved = std::visit(
      [&](const auto& map) { return save(environment, map, output, save_options); }, data->map);
  if (!saved) return std::unexpected(saved.error());
  return kOk;
}

}  // namespace

void add_export_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<ExportMapOptions>();
  CLI::App& command =
      *app.add_subcommand("export", "Write all items as text, sorted, one record per key");
  command
      .add_option("--to", options->to,
                  "Format to write (default: from the name of --output; else tsv, or lines if "
                  "there are only keys)")
      ->check(CLI::IsMember({"lines", "csv", "tsv", "json-lines"}).description(""))
      ->type_name("lines|csv|tsv|json-lines");
  command.add_option("-o,--output", options->output, "File to replace; - is standard output")
      ->type_name("FILE")
      ->capture_default_str();
  command.add_flag("--json", options->json, "The same as --to json-lines");
  add_source_options(command, options->source, true);
  // Here a separator is also how to write.
  std::erase_if(options->source.reading,
                [](const CLI::Option* option) { return option->check_lname("separator"); });
  command.footer(
      "An output file is replaced all at once, when it is complete. Format lines holds keys only.\n"
      "A hash map of a node is written in no order, while others use it: what is there all the\n"
      "time is there once.\n"
      "Examples:\n"
      "  espalier export prices.csv --to json-lines\n"
      "  espalier export old.csv new.csv --output merged.csv    later files win\n"
      "  cat *.words | espalier export -                       sorted by byte, without repeats\n"
      "  espalier export --at unix:/run/espalier/espalier.sock --output copy.tsv\n");
  command.callback([options, &environment, &chosen] {
    chosen = reporting(environment,
                       [options, &environment] { return export_map(environment, *options); });
  });
}

}  // namespace espalier::tools

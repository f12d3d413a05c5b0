// SPDX-License-Identifier: Apache-2.0
// espalier load: fills a map from files and tells how that went.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/commands.hpp"
#include "tools/numbers.hpp"

namespace espalier::tools {
namespace {

struct Options {
  SourceOptions source;
  bool json = false;
};

/// What is printed, gathered once for text and JSON.
struct Summary {
  const LoadReport& report;
  Payload payload;
  MapStats stats;
  const std::vector<std::string>& files;

  [[nodiscard]] double seconds() const { return static_cast<double>(report.elapsed_ns) * 1e-9; }
  [[nodiscard]] std::uint64_t records_per_s() const {
    return static_cast<std::uint64_t>(static_cast<double>(report.records) /
                                      std::max(seconds(), 1e-9));
  }
  [[nodiscard]] std::uint64_t memory_bytes() const { return stats.node_bytes + stats.value_bytes; }
};

void print_json(std::ostream& out, const Summary& summary) {
  const LoadReport& report = summary.report;
  nlohmann::ordered_json object;
  object["files"] = nlohmann::ordered_json::array();
  for (const std::string& file : summary.files) {
    // A file's name is bytes too; what is no UTF-8 in it is shown escaped.
    object["files"].push_back(is_utf8(file) ? file : encode(file, Encoding::escaped));
  }
  object["records"] = report.records;
  object["items"] = summary.payload.items;
  object["duplicates"] = report.duplicates;
  object["bad_lines"] = report.bad_lines;
  object["blank_lines"] = report.blank_lines;
  object["input_bytes"] = report.input_bytes;
  object["key_bytes"] = summary.payload.key_bytes;
  object["value_bytes"] = summary.payload.value_bytes;
  object["memory_bytes"] = summary.memory_bytes();
  object["seconds"] = summary.seconds();
  object["records_per_s"] = summary.records_per_s();
  object["first_bad_lines"] = nlohmann::ordered_json::array();
  for (const BadLine& bad : report.shown) {
    const std::string reason = is_utf8(bad.record.reason)
                                   ? bad.record.reason
                                   : encode(bad.record.reason, Encoding::escaped);
    object["first_bad_lines"].push_back(
        {{"file", is_utf8(bad.file) ? bad.file : encode(bad.file, Encoding::escaped)},
         {"line", bad.record.line},
         {"reason", reason}});
  }
  out << object.dump() << '\n';
}

void print_text(std::ostream& out, const Summary& summary) {
  const LoadReport& report = summary.report;
  const Payload& payload = summary.payload;
  const std::uint64_t payload_bytes = payload.key_bytes + payload.value_bytes;
  out << fmt::format("records     {} in {} ({}/s)\n", format_count(report.records),
                     format_bytes(report.input_bytes), format_count(summary.records_per_s()));
  out << fmt::format("items       {}", format_count(payload.items));
  if (report.duplicates > 0) {
    out << fmt::format("; {} repeated a key, the last one stays", format_count(report.duplicates));
  }
  out << fmt::format("\nbad lines   {}\n", format_count(report.bad_lines));
  if (report.blank_lines > 0) {
    out << fmt::format("blank lines {}\n", format_count(report.blank_lines));
  }
  out << fmt::format("keys        {}\nvalues      {}\n", format_bytes(payload.key_bytes),
                     format_bytes(payload.value_bytes));
  out << fmt::format("memory      {}", format_bytes(summary.memory_bytes()));
  if (payload_bytes > 0) {
    out << fmt::format(", {:.2f} times keys and values",
                       static_cast<double>(summary.memory_bytes()) /
                           static_cast<double>(payload_bytes));
  }
  out << fmt::format("\ntime        {:.3f} s\n", summary.seconds());
}

Outcome<int> load_files(Environment& environment, const Options& options) {
  if (auto checked = check_source(options.source); !checked) {
    return std::unexpected(checked.error());
  }
  const auto data = load(environment, options.source);
  if (!data) return std::unexpected(data.error());
  const auto payload = measure(data->map);
  if (!payload) return std::unexpected(payload.error());
  const Summary summary{data->report, *payload, data->map.stats(), options.source.files};
  if (options.json) {
    print_json(environment.out, summary);
  } else {
    print_text(environment.out, summary);
  }
  if (auto clean = check_clean(options.source, data->report); !clean) {
    return std::unexpected(clean.error());
  }
  return kOk;
}

}  // namespace

void add_load_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("load", "Fill a map from files, and tell how that went");
  add_json_option(command, options->json);
  add_source_options(command, options->source, true);
  add_map_options(command, options->source);
  command.footer(
      "Bad lines are told by number and reason and left out; the first 20 are shown.\n"
      "Examples:\n"
      "  espalier load /usr/share/dict/american-english-insane\n"
      "  espalier load --key-column 2 --value-column 3 --header people.csv\n"
      "  zcat dump.tsv.gz | espalier load - --format tsv --strict\n");
  command.callback([options, &environment, &chosen] {
    chosen = reporting(environment,
                       [options, &environment] { return load_files(environment, *options); });
  });
}

}  // namespace espalier::tools

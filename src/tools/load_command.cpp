// SPDX-License-Identifier: Apache-2.0
// espalier load: fills a map from files and reports on it. The map is a temporary one of this
// process, or one of a node.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <variant>

#include "base/utf8.hpp"
#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/numbers.hpp"

namespace espalier::tools {
namespace {

struct LoadOptions {
  SourceOptions source;
  bool json = false;
};

/// What is printed, gathered once for text and JSON.
struct Summary {
  const LoadReport& report;
  Payload payload;
  std::uint64_t memory_bytes;
  const SourceOptions& source;
  std::string address;  // of the node; empty: none
  std::string map;

  [[nodiscard]] double seconds() const { return static_cast<double>(report.elapsed_ns) * 1e-9; }
  [[nodiscard]] std::uint64_t records_per_s() const {
    return static_cast<std::uint64_t>(static_cast<double>(report.records) /
                                      std::max(seconds(), 1e-9));
  }
};

std::uint64_t memory_taken(const MapStats& stats) { return stats.node_bytes + stats.value_bytes; }
std::uint64_t memory_taken(const HashMapStats& stats) { return stats.memory_bytes; }

/// Names of files and maps are bytes too; what is no UTF-8 in them is shown escaped.
std::string readable(const std::string& text) {
  return base::is_utf8(text) ? text : encode(text, Encoding::escaped);
}

void print_load_json(std::ostream& out, const Summary& summary) {
  const LoadReport& report = summary.report;
  nlohmann::ordered_json object;
  object["files"] = nlohmann::ordered_json::array();
  for (const std::string& file : summary.source.files) {
    object["files"].push_back(readable(file));
  }
  if (!summary.address.empty()) {
    object["at"] = readable(summary.address);
    object["map"] = readable(summary.map);
  }
  object["records"] = report.records;
  object["items"] = summary.payload.items;
  object["duplicates"] = report.duplicates;
  object["bad_lines"] = report.bad_lines;
  object["blank_lines"] = report.blank_lines;
  object["input_bytes"] = report.input_bytes;
  object["key_bytes"] = summary.payload.key_bytes;
  object["value_bytes"] = summary.payload.value_bytes;
  object["memory_bytes"] = summary.memory_bytes;
  object["seconds"] = summary.seconds();
  object["records_per_s"] = summary.records_per_s();
  object["first_bad_lines"] = nlohmann::ordered_json::array();
  for (const BadLine& bad : report.shown) {
    object["first_bad_lines"].push_back({{"file", readable(bad.file)},
                                         {"line", bad.record.line},
                                         {"reason", readable(bad.record.reason)}});
  }
  out << object.dump() << '\n';
}

void print_load_text(std::ostream& out, const Summary& summary) {
  const LoadReport& report = summary.report;
  const Payload& payload = summary.payload;
  const std::uint64_t payload_bytes = payload.key_bytes + payload.value_bytes;
  out << fmt::format("records     {} in {} ({}/s)\n", format_count(report.records),
                     format_bytes(report.input_bytes), format_count(summary.records_per_s()));
  out << fmt::format("items       {}", format_count(payload.items));
  if (!summary.address.empty()) {
    out << fmt::format(" in map '{}' at {}", encode(summary.map, Encoding::escaped),
                       summary.address);
    if (report.duplicates > 0) {
      out << fmt::format("; {} replaced one", format_count(report.duplicates));
    }
  } else if (report.duplicates > 0) {
    out << fmt::format("; {} repeated a key, the last one stays", format_count(report.duplicates));
  }
  out << fmt::format("\nbad lines   {}\n", format_count(report.bad_lines));
  if (report.blank_lines > 0) {
    out << fmt::format("blank lines {}\n", format_count(report.blank_lines));
  }
  out << fmt::format("keys        {}\nvalues      {}\n", format_bytes(payload.key_bytes),
                     format_bytes(payload.value_bytes));
  out << fmt::format("memory      {}", format_bytes(summary.memory_bytes));
  if (payload_bytes > 0 && summary.address.empty()) {
    out << fmt::format(", {:.2f} times keys and values", static_cast<double>(summary.memory_bytes) /
                                                             static_cast<double>(payload_bytes));
  }
  out << fmt::format("\ntime        {:.3f} s\n", summary.seconds());
}

Outcome<int> report_load(Environment& environment, const LoadOptions& options,
                         const Summary& summary) {
  if (options.json) {
    print_load_json(environment.out, summary);
  } else {
    print_load_text(environment.out, summary);
  }
  if (auto clean = check_clean(options.source, summary.report); !clean) {
    return std::unexpected(clean.error());
  }
  return kOk;
}

/// What lies on a node may be much more than was loaded, so it is not measured: keys and values are
/// those that were read.
template <class AMap>
Outcome<int> load_to(Environment& environment, const LoadOptions& options,
                     const std::string& address, const std::string& name, const AMap& map) {
  const auto report = load_into_node(environment, options.source, map);
  if (!report) return std::unexpected(report.error());
  const auto stats = stats_of(map);
  if (!stats) return std::unexpected(stats.error());
  const Payload payload{stats->items, report->key_bytes, report->value_bytes};
  return report_load(environment, options,
                     {*report, payload, memory_taken(*stats), options.source, address, name});
}

Outcome<int> load_to(Environment& environment, const LoadOptions& options,
                     const std::string& address) {
  const auto store = connect(environment, address);
  if (!store) return std::unexpected(store.error());
  const std::string name = options.source.map_name.value_or(std::string(kDefaultMap));
  const auto opened = open_any_map(*store, address, name);
  if (!opened) return std::unexpected(opened.error());
  return std::visit(
      [&](const auto& map) { return load_to(environment, options, address, name, map); }, *opened);
}

template <class Loaded>
Outcome<int> report_own(Environment& environment, const LoadOptions& options,
                        const Outcome<Loaded>& data) {
  if (!data) return std::unexpected(data.error());
  const auto payload = measure(data->map);
  if (!payload) return std::unexpected(payload.error());
  const auto stats = stats_of(data->map);
  if (!stats) return std::unexpected(stats.error());
  return report_load(environment, options,
                     {data->report, *payload, memory_taken(*stats), options.source, "", ""});
}

Outcome<int> load_files(Environment& environment, const LoadOptions& options) {
  if (auto checked = check_load_source(environment, options.source); !checked) {
    return std::unexpected(checked.error());
  }
  if (const auto address = load_address(environment, options.source)) {
    return load_to(environment, options, *address);
  }
  if (auto checked = check_kind(options.source.making, options.source.hashed); !checked) {
    return std::unexpected(checked.error());
  }
  if (options.source.hashed) {
    return report_own(environment, options, load_hashed(environment, options.source));
  }
  return report_own(environment, options, load(environment, options.source));
}

}  // namespace

void add_load_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<LoadOptions>();
  CLI::App& command = *app.add_subcommand("load", "Fill a map from files, and tell how that went");
  add_json_option(command, options->json);
  add_source_options(command, options->source, true);
  add_making_options(command, options->source);
  command.footer(
      "Bad lines are told by number and reason and left out; the first 20 are shown. With --at or\n"
      "ESPALIER_AT the records go into a map of that node, ordered or a hash map, else into one "
      "that\n"
      "ends with the command.\n"
      "Examples:\n"
      "  espalier load /usr/share/dict/american-english-insane\n"
      "  espalier load --key-column 2 --value-column 3 --header people.csv\n"
      "  zcat dump.tsv.gz | espalier load - --format tsv --strict\n"
      "  espalier load --at unix:/run/espalier/espalier.sock --map words words.txt\n");
  command.callback([options, &environment, &chosen] {
    chosen = reporting(environment,
                       [options, &environment] { return load_files(environment, *options); });
  });
}

}  // namespace espalier::tools

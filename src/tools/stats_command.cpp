// SPDX-License-Identifier: Apache-2.0
// espalier stats: numbers about the maps of a node.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/json_record.hpp"
#include "tools/json_stats.hpp"
#include "tools/numbers.hpp"

namespace espalier::tools {
namespace {

struct Options {
  std::optional<std::string> at;
  std::optional<std::string> map_name;
  bool json = false;
};

void print_json(std::ostream& out, const std::string& name, const MapStats& stats) {
  nlohmann::ordered_json object;
  set_bytes(object, "map", name);
  set_stats(object, stats);
  out << object.dump() << '\n';
}

void print_text(std::ostream& out, const std::string& name, const MapStats& stats) {
  out << fmt::format("map         {}\n", encode(name, Encoding::escaped));
  out << fmt::format("items       {}\n", format_count(stats.items));
  out << fmt::format("height      {} ({} leaves, {} interior nodes)\n", stats.height,
                     format_count(stats.leaves), format_count(stats.interior_nodes));
  out << fmt::format("memory      {} in nodes, {} in values beside them, {} retired\n",
                     format_bytes(stats.node_bytes), format_bytes(stats.value_bytes),
                     format_bytes(stats.retired_bytes));
  out << fmt::format("history     {} splits, {} redistributions, {} node merges, {} log merges\n",
                     format_count(stats.splits), format_count(stats.redistributions),
                     format_count(stats.merges), format_count(stats.log_merges));
  out << fmt::format("versions    {} read, {} written, {} snapshots\n",
                     format_count(stats.read_version), format_count(stats.write_version),
                     format_count(stats.snapshots));
}

Outcome<int> print_stats(Environment& environment, const Options& options) {
  const auto address = required_address(environment, options.at);
  if (!address) return std::unexpected(address.error());
  const auto store = connect(environment, *address);
  if (!store) return std::unexpected(store.error());
  const auto names = options.map_name ? std::vector{*options.map_name} : store->map_names();
  bool first = true;
  for (const std::string& name : names) {
    const auto map = open_map(*store, *address, name);
    if (!map) return std::unexpected(map.error());
    if (options.json) {
      print_json(environment.out, name, map->stats());
    } else {
      if (!first) environment.out << '\n';
      print_text(environment.out, name, map->stats());
    }
    first = false;
  }
  return kOk;
}

}  // namespace

void add_stats_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("stats", "Print numbers about the maps of a node");
  add_json_option(command, options->json);
  add_address_option(command, options->at);
  add_map_name_option(command, options->map_name);
  command.get_option("--map")->description("Print numbers of this map only");
  command.footer(
      "Examples:\n"
      "  espalier stats --at unix:/run/espalier/espalier.sock\n"
      "  espalier stats --at unix:/run/espalier/espalier.sock --map words --json\n");
  command.callback([options, &environment, &chosen] {
    chosen = reporting(environment,
                       [options, &environment] { return print_stats(environment, *options); });
  });
}

}  // namespace espalier::tools

// SPDX-License-Identifier: Apache-2.0
// espalier check: examines maps and hash maps of a node from outside, by questions whose answers
// must agree (tools/map_check.hpp, tools/hash_check.hpp); or fills a map from files, and examines
// it so, and by its own audit; or verifies a data folder (tools/check_data.hpp).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <variant>

#include "cmdline/text_codec.hpp"
#include "tools/check_data.hpp"
#include "tools/check_hash.hpp"
#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/json_record.hpp"
#include "tools/json_stats.hpp"
#include "tools/map_check.hpp"
#include "tools/numbers.hpp"
#include "tools/progress.hpp"

namespace espalier::tools {
namespace {

struct CheckOptions {
  SourceOptions source;
  std::optional<std::string> data;  // a folder: nothing else is looked at
  bool json = false;
};

std::string miscounted(std::uint64_t delivered, std::uint64_t counted) {
  return fmt::format("scans deliver {} items where the map's own number is {}", delivered, counted);
}

/// Checks what a map answers, and shows how far it has come. `steady`: see MapCheckOptions.
MapCheckReport check_answers(Environment& environment, const Map& map, bool steady,
                             std::uint64_t items) {
  Progress progress(environment, fmt::format("checking '{}'", cmdline::escaped(map.name())),
                    std::nullopt);
  MapCheckOptions options;
  options.max_key_bytes = map.max_key_bytes();
  options.steady = steady;
  return check_map(answers_of(map), options, environment.now_ns,
                   [&](std::uint64_t done) { progress.update_items(done, items); });
}

std::vector<std::string> examine(Environment& environment, const Map& map, std::uint64_t items) {
  std::vector<std::string> faults = map.audit();
  const MapCheckReport report = check_answers(environment, map, true, items);
  faults.insert(faults.end(), report.faults.begin(), report.faults.end());
  if (report.stopped_by) {
    faults.push_back(fmt::format("it cannot be read to its end: {}", reason(*report.stopped_by)));
  } else if (report.faults.empty() && report.items != items) {
    faults.push_back(miscounted(report.items, items));
  }
  return faults;
}

double ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

void print_check_json(std::ostream& out, const MapStats& stats, const Payload& payload,
                      const std::vector<std::string>& faults) {
  nlohmann::ordered_json object;
  set_stats(object, stats);
  object["payload_bytes"] = payload.key_bytes + payload.value_bytes;
  object["fill"] =
      ratio(payload.key_bytes + payload.value_bytes, stats.node_bytes + stats.value_bytes);
  object["bytes_per_item"] = ratio(stats.node_bytes + stats.value_bytes, stats.items);
  object["faults"] = faults;
  out << object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

void print_check_text(std::ostream& out, const MapStats& stats, const Payload& payload,
                      const std::vector<std::string>& faults) {
  const std::uint64_t memory_bytes = stats.node_bytes + stats.value_bytes;
  const std::uint64_t payload_bytes = payload.key_bytes + payload.value_bytes;
  out << fmt::format("items       {}\n", format_count(stats.items));
  out << fmt::format("height      {} ({} leaves, {} interior nodes)\n", stats.height,
                     format_count(stats.leaves), format_count(stats.interior_nodes));
  out << fmt::format("memory      {} in nodes, {} in values beside them\n",
                     format_bytes(stats.node_bytes), format_bytes(stats.value_bytes));
  out << fmt::format("fill        {:.1f} % of it are keys and values\n",
                     100 * ratio(payload_bytes, memory_bytes));
  out << fmt::format("per item    {:.1f} bytes, of which {:.1f} key and value\n",
                     ratio(memory_bytes, stats.items), ratio(payload_bytes, stats.items));
  out << fmt::format("history     {} splits, {} redistributions, {} node merges, {} log merges\n",
                     format_count(stats.splits), format_count(stats.redistributions),
                     format_count(stats.merges), format_count(stats.log_merges));
  if (faults.empty()) out << "no faults found\n";
  for (const std::string& fault : faults) out << fmt::format("fault: {}\n", fault);
}

Outcome<int> check_hash_files(Environment& environment, const CheckOptions& options) {
  const auto data = load_hashed(environment, options.source);
  if (!data) return std::unexpected(data.error());
  if (auto clean = check_clean(options.source, data->report); !clean) {
    return std::unexpected(clean.error());
  }
  return check_loaded_hash(environment, *data, options.json);
}

Outcome<int> check_files(Environment& environment, const CheckOptions& options) {
  if (auto checked = check_kind(options.source.making, options.source.hashed); !checked) {
    return std::unexpected(checked.error());
  }
  if (options.source.hashed) return check_hash_files(environment, options);
  const auto data = load_clean(environment, options.source);
  if (!data) return std::unexpected(data.error());
  const auto stats = stats_of(data->map);
  if (!stats) return std::unexpected(stats.error());
  const std::vector<std::string> faults = examine(environment, data->map, stats->items);
  const auto payload = measure(data->map);
  if (!payload) return std::unexpected(payload.error());
  if (options.json) {
    print_check_json(environment.out, *stats, *payload, faults);
  } else {
    print_check_text(environment.out, *stats, *payload, faults);
  }
  return faults.empty() ? kOk : kFailed;
}

// --- on a node -----------------------------------------------------------------------------------

std::string counted_files(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", format_count(count), what, count == 1 ? "" : "s");
}

void print_check_json(std::ostream& out, const Map& map, const MapCheckReport& report) {
  nlohmann::ordered_json object;
  set_bytes(object, "map", map.name());
  object["items"] = report.items;
  object["compared"] = map.options().versions;
  object["gets"] = report.gets;
  object["floors"] = report.floors;
  object["versions_held"] = report.versions;
  object["counted_in_all"] = report.counted_in_all;
  object["faults"] = report.faults;
  out << object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

void print_check_text(std::ostream& out, const Map& map, const MapCheckReport& report) {
  const std::string name = cmdline::escaped(map.name());
  for (const std::string& fault : report.faults) {
    out << fmt::format("map '{}': fault: {}\n", name, fault);
  }
  if (!report.faults.empty()) return;
  const std::string items = counted_files(report.items, "item");
  if (map.options().versions) {
    out << fmt::format("map '{}': {}; scans, counts, {} and {} agree; no faults found\n", name,
                       items, counted_files(report.gets, "get"),
                       counted_files(report.floors, "floor"));
  } else {
    out << fmt::format(
        "map '{}': {} in order; without versions no more can be compared; "
        "no faults found\n",
        name, items);
  }
}

/// The map's own item count belongs to one version only while no client writes.
void compare_number(const MapStats& before, const MapStats& after, MapCheckReport& report) {
  const bool quiet = before.write_version == after.write_version && after.write_version != 0;
  if (quiet && report.faults.empty() && report.items != after.items) {
    report.faults.push_back(miscounted(report.items, after.items));
  }
}

/// Checks one map of a node. Fails if the node does.
Outcome<MapCheckReport> check_served(Environment& environment, const Map& map) {
  const auto what = fmt::format("check map '{}'", cmdline::escaped(map.name()));
  const auto before = map.stats();
  if (!before) return call_failed(what, before.error());
  MapCheckReport report = check_answers(environment, map, map.options().versions, before->items);
  if (report.stopped_by && report.faults.empty()) return call_failed(what, *report.stopped_by);
  if (report.stopped_by) return report;
  const auto after = map.stats();
  if (!after) return call_failed(what, after.error());
  if (map.options().versions) compare_number(*before, *after, report);
  return report;
}

/// Returns whether no fault was found.
Outcome<bool> check_named(Environment& environment, const CheckOptions& options, const Store& store,
                          const std::string& address, const std::string& name) {
  const auto opened = open_any_map(store, address, name);
  if (!opened) return std::unexpected(opened.error());
  if (const auto* const hashed = std::get_if<HashMap>(&*opened)) {
    return check_served_hash(environment, *hashed, options.json);
  }
  const Map& map = std::get<Map>(*opened);
  const auto report = check_served(environment, map);
  if (!report) return std::unexpected(report.error());
  if (options.json) {
    print_check_json(environment.out, map, *report);
  } else {
    print_check_text(environment.out, map, *report);
  }
  return report->faults.empty();
}

/// Ordered maps first.
Outcome<std::vector<std::string>> names_of_both_kinds(const Store& store) {
  auto names = map_names(store);
  if (!names) return names;
  auto hashed = hash_map_names(store);
  if (!hashed) return hashed;
  names->insert(names->end(), hashed->begin(), hashed->end());
  return names;
}

/// Whether a client has dropped the map: the others are checked all the same.
bool is_gone(const Store& store, const std::string& name) {
  const auto names = names_of_both_kinds(store);
  return names && std::find(names->begin(), names->end(), name) == names->end();
}

void print_gone(std::ostream& out, bool json, const std::string& name) {
  if (!json) {
    out << fmt::format("map '{}': dropped meanwhile\n", cmdline::escaped(name));
    return;
  }
  nlohmann::ordered_json object;
  set_bytes(object, "map", name);
  object["dropped"] = true;
  out << object.dump() << '\n';
}

Outcome<int> check_node(Environment& environment, const CheckOptions& options,
                        const std::string& address) {
  const auto store = connect(environment, address);
  if (!store) return std::unexpected(store.error());
  const auto names = options.source.map_name
                         ? Outcome<std::vector<std::string>>({*options.source.map_name})
                         : names_of_both_kinds(*store);
  if (!names) return std::unexpected(names.error());
  bool sound = true;
  for (const std::string& name : *names) {
    const auto checked = check_named(environment, options, *store, address, name);
    if (checked) {
      sound = sound && *checked;
    } else if (options.source.map_name || !is_gone(*store, name)) {
      return std::unexpected(checked.error());
    } else {
      print_gone(environment.out, options.json, name);
    }
  }
  return sound ? kOk : kFailed;
}

// --- a data folder -------------------------------------------------------------------------------

/// Checks that nothing is named that is not in the folder.
Outcome<void> check_data_alone(const SourceOptions& source) {
  const bool elsewhere = !source.files.empty() || source.at || source.map_name;
  if (elsewhere) {
    return misused("--data names what to examine, and so does something else",
                   "Leave out files, --at and --map.");
  }
  for (const auto& options : {source.reading, source.making}) {
    for (const CLI::Option* const option : options) {
      if (option->count() == 0 || option->check_name("--memory-max")) continue;
      return misused(fmt::format("{} says something of files or maps, and --data names a folder",
                                 option->get_name()),
                     "Leave it out.");
    }
  }
  return {};
}

Outcome<int> run_check(Environment& environment, const CheckOptions& options) {
  if (options.data) {
    if (auto alone = check_data_alone(options.source); !alone) {
      return std::unexpected(alone.error());
    }
    return check_data_folder(environment, *options.data, options.source.memory_bytes_max,
                             options.json);
  }
  if (auto checked = check_source(environment, options.source); !checked) {
    return std::unexpected(checked.error());
  }
  const auto address = data_address(environment, options.source);
  if (!address) return check_files(environment, options);
  if (auto checked = check_nothing_made(options.source); !checked) {
    return std::unexpected(checked.error());
  }
  return check_node(environment, options, *address);
}

}  // namespace

void add_check_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<CheckOptions>();
  CLI::App& command = *app.add_subcommand(
      "check", "Examine the maps of a node, one that is filled from files, or a data folder");
  add_json_option(command, options->json);
  add_source_options(command, options->source, true);
  add_making_options(command, options->source);
  command.get_option("--map")->description("Examine this map of the node only (default: all)");
  command
      .add_option("--data", options->data,
                  "Examine the data folder of a node that does not run: its log, and all objects")
      ->type_name("DIR");
  command.footer(
      "On a node, every map is read three times, as of versions that are held for a second at "
      "most,\n"
      "while others use it. Checked: keys strictly ascend over the whole map; scans in both\n"
      "directions deliver the same keys and values; ranges count as many items; gets of some "
      "keys,\n"
      "and of keys between them, and floors agree with the scans. Of a map without versions only\n"
      "the order. Of a hash map a walk delivers as many items as it says that it has, and gets "
      "find\n"
      "the same. Not checked there: how tree or table are built, and whether memory is lost. A "
      "map\n"
      "from files is audited for that too, and measured.\n"
      "Of a data folder the log is read, which changes nothing, and all objects are made again of\n"
      "it in memory, as when the node starts, and audited.\n"
      "Exits with 1 if a fault is found.\n"
      "Examples:\n"
      "  espalier check --at unix:/run/espalier/espalier.sock\n"
      "  espalier check --at unix:/run/espalier/espalier.sock --map words --json\n"
      "  espalier check --data /var/lib/espalier\n"
      "  espalier check /usr/share/dict/words\n"
      "  espalier check prices.csv --node-bytes 512 --json\n");
  command.callback([options, &environment, &chosen] {
    chosen = reporting(environment,
                       [options, &environment] { return run_check(environment, *options); });
  });
}

}  // namespace espalier::tools

// SPDX-License-Identifier: Apache-2.0
// espalier check: fills a map and examines it. Beside the map's own audit, it asks the map
// questions from outside whose answers must agree.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
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

/// Scans everything in one direction and notes what is out of order.
void check_order(const Map& map, bool reverse, std::uint64_t items,
                 std::vector<std::string>& faults) {
  const std::string_view direction = reverse ? "descending" : "ascending";
  std::string previous;
  std::uint64_t seen = 0;
  const auto look = [&](std::span<const Item> run) {
    for (const Item& item : run) {
      const bool in_order = seen == 0 || (reverse ? item.key < previous : previous < item.key);
      if (!in_order) {
        faults.push_back(fmt::format("an {} scan delivers key '{}' after '{}'", direction,
                                     encode(item.key, Encoding::escaped),
                                     encode(previous, Encoding::escaped)));
        return false;
      }
      previous = item.key;
      ++seen;
    }
    return true;
  };
  const auto scanned = map.scan("", "", look, ScanOptions{0, reverse, false});
  if (!scanned) {
    faults.push_back(fmt::format("an {} scan fails: {}", direction, reason(scanned.error())));
  } else if (faults.empty() && seen != items) {
    faults.push_back(fmt::format("an {} scan delivers {} items where the map counts {}", direction,
                                 seen, items));
  }
}

std::vector<std::string> examine(const Map& map) {
  std::vector<std::string> faults = map.audit();
  const std::uint64_t items = map.stats().items;
  check_order(map, false, items, faults);
  check_order(map, true, items, faults);
  return faults;
}

double ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

void print_json(std::ostream& out, const MapStats& stats, const Payload& payload,
                const std::vector<std::string>& faults) {
  nlohmann::ordered_json object;
  object["items"] = stats.items;
  object["height"] = stats.height;
  object["leaves"] = stats.leaves;
  object["interior_nodes"] = stats.interior_nodes;
  object["node_bytes"] = stats.node_bytes;
  object["value_bytes"] = stats.value_bytes;
  object["waiting_bytes"] = stats.waiting_bytes;
  object["payload_bytes"] = payload.key_bytes + payload.value_bytes;
  object["fill"] = ratio(payload.key_bytes + payload.value_bytes,
                         stats.node_bytes + stats.value_bytes);
  object["bytes_per_item"] = ratio(stats.node_bytes + stats.value_bytes, stats.items);
  object["log_merges"] = stats.log_merges;
  object["splits"] = stats.splits;
  object["gives"] = stats.gives;
  object["merges"] = stats.merges;
  object["faults"] = faults;
  out << object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

void print_text(std::ostream& out, const MapStats& stats, const Payload& payload,
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
  out << fmt::format("history     {} splits, {} gives, {} node merges, {} log merges\n",
                     format_count(stats.splits), format_count(stats.gives),
                     format_count(stats.merges), format_count(stats.log_merges));
  if (faults.empty()) out << "no faults found\n";
  for (const std::string& fault : faults) out << fmt::format("fault: {}\n", fault);
}

Outcome<int> check(Environment& environment, const Options& options) {
  if (auto checked = check_source(options.source); !checked) {
    return std::unexpected(checked.error());
  }
  const auto data = load_clean(environment, options.source);
  if (!data) return std::unexpected(data.error());
  const std::vector<std::string> faults = examine(data->map);
  const auto payload = measure(data->map);
  if (!payload) return std::unexpected(payload.error());
  const MapStats stats = data->map.stats();
  if (options.json) {
    print_json(environment.out, stats, *payload, faults);
  } else {
    print_text(environment.out, stats, *payload, faults);
  }
  return faults.empty() ? kOk : kFailed;
}

}  // namespace

void add_check_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App& command =
      *app.add_subcommand("check", "Fill a map, examine its whole structure, and measure it");
  add_json_option(command, options->json);
  add_source_options(command, options->source, true);
  add_map_options(command, options->source);
  command.footer(
      "Exits with 1 if a fault is found.\n"
      "Examples:\n"
      "  espalier check /usr/share/dict/words\n"
      "  espalier check prices.csv --node-bytes 512 --json\n");
  command.callback([options, &environment, &chosen] {
    chosen =
        reporting(environment, [options, &environment] { return check(environment, *options); });
  });
}

}  // namespace espalier::tools

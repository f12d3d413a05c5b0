// SPDX-License-Identifier: Apache-2.0
// espalier ping: how long a node takes to answer. What is sent are reads of a key, one at a time,
// which every map answers whatever is in it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "cmdline/number_option.hpp"
#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/numbers.hpp"
#include "tools/round_trips.hpp"

namespace espalier::tools {
namespace {

constexpr std::uint64_t kPingsMax = 1'000'000;

struct PingOptions {
  std::optional<std::string> at;
  std::optional<std::string> map_name;
  std::uint64_t count = 1000;
  bool json = false;
};

Outcome<RoundTrips> measure_reads(Environment& environment, const Map& map, std::uint64_t count) {
  const std::string key(1, '\xff');
  std::vector<std::uint64_t> times;
  times.reserve(count);
  // The first one makes what later ones find made, and is not counted.
  for (std::uint64_t i = 0; i <= count; ++i) {
    const std::uint64_t begin = environment.now_ns();
    const auto got = map.get(key);
    const std::uint64_t end = environment.now_ns();
    if (!got) return call_failed("read from the node", got.error());
    if (i != 0) times.push_back(end - begin);
  }
  return RoundTrips(std::move(times));
}

Outcome<int> ping_node(Environment& environment, const PingOptions& options) {
  const auto address = required_address(environment, options.at);
  if (!address) return std::unexpected(address.error());
  const auto store = connect(environment, *address);
  if (!store) return std::unexpected(store.error());
  // Any map will do, unless one is named.
  std::string name = options.map_name.value_or(std::string(kDefaultMap));
  if (!options.map_name) {
    const auto names = map_names(*store);
    if (!names) return std::unexpected(names.error());
    if (!names->empty()) name = names->front();
  }
  const auto map = open_map(*store, *address, name);
  if (!map) return std::unexpected(map.error());
  const auto times = measure_reads(environment, *map, options.count);
  if (!times) return std::unexpected(times.error());
  if (options.json) {
    nlohmann::ordered_json object;
    object["at"] = encode(*address, Encoding::escaped);
    object["count"] = options.count;
    times->add_to(object);
    environment.out << object.dump() << '\n';
    return kOk;
  }
  environment.out << fmt::format("{}: {} round trip{}: {}\n", *address, format_count(options.count),
                                 options.count == 1 ? "" : "s", times->text());
  return kOk;
}

}  // namespace

void add_ping_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<PingOptions>();
  CLI::App& command = *app.add_subcommand("ping", "Measure how long a node takes to answer");
  cmdline::add_number(command, "-c,--count", options->count, "Round trips to measure",
                      {1, kPingsMax});
  add_json_option(command, options->json);
  add_address_option(command, options->at);
  add_map_name_option(command, options->map_name);
  command.get_option("--map")->description("Ask this map (default: the node's first)");
  command.footer(
      "Exits with 1 if no node answers.\n"
      "Examples:\n"
      "  espalier ping --at unix:/run/espalier/espalier.sock\n"
      "  espalier ping --at unix:/run/espalier/espalier.sock --count 1 --json\n");
  command.callback([options, &environment, &chosen] {
    chosen = reporting(environment,
                       [options, &environment] { return ping_node(environment, *options); });
  });
}

}  // namespace espalier::tools

// SPDX-License-Identifier: Apache-2.0
// espalier shard create, status: maps that are split by key range over several nodes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "channel/rings/node_address.hpp"
#include "cmdline/text_codec.hpp"
#include "shards/sharding.hpp"
#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/json_record.hpp"
#include "tools/numbers.hpp"

namespace espalier::tools {
namespace {

struct ShardOptions {
  std::optional<std::string> at;
  std::string name;
  std::vector<std::string> shards;
  std::optional<Encoding> encoding;
  MapOptions map;
  bool json = false;
};

std::string shown(std::string_view bytes) { return encode(bytes, Encoding::escaped); }

Outcome<std::vector<wire::Shard>> shards_of(const ShardOptions& options) {
  std::vector<wire::Shard> shards;
  for (const std::string& text : options.shards) {
    wire::Shard shard{{}, text};
    if (!shards.empty()) {
      const std::size_t at = text.find('=');
      if (at == std::string::npos) {
        return misused(fmt::format("'{}' has no border", text),
                       "The first --shard is ADDRESS, and has the lowest keys; each other one is "
                       "BORDER=ADDRESS, and has the keys from BORDER on.");
      }
      auto border = operand_bytes(text.substr(0, at), options.encoding, "border");
      if (!border) return std::unexpected(std::move(border.error()));
      shard = {std::move(*border), text.substr(at + 1)};
    }
    if (const auto address = client::parse_node_address(shard.address); !address) {
      return misused(fmt::format("'{}' is no address of a node", shard.address),
                     client::explain_node_address(address.error()));
    }
    shards.push_back(std::move(shard));
  }
  return shards;
}

std::unexpected<Failure> not_made(const ShardOptions& options,
                                  const std::vector<wire::Shard>& shards,
                                  const client::ShardFailure& failure) {
  const std::string name = cmdline::escaped(options.name);
  const std::string& address = shards[failure.shard].address;
  if (failure.error.code == Code::invalid_argument && !failure.words.empty()) {
    return misused(fmt::format("map '{}' cannot be split so: {}", name, failure.words),
                   "Give up to 64 --shard, by ascending borders, each with an address of its own.");
  }
  std::string why = message(failure.error);
  if (failure.error.code == Code::already_exists) why = "it has that name already.";
  if (failure.error.code == Code::unsupported) why = "it is older than maps over several nodes.";
  if (failure.error.code == Code::invalid_argument) {
    why = "no map can be made with this name and these options.";
  }
  std::string hint = "None of the shards is there now.";
  if (!failure.left.empty()) {
    hint = "Perhaps still there:";
    for (const std::size_t left : failure.left) {
      hint += fmt::format(" espalier map drop {} --at {};", name, shards[left].address);
    }
  }
  return failed(
      fmt::format("cannot make shard {} of map '{}' at {}: {}", failure.shard, name, address, why),
      hint);
}

Outcome<int> create_sharded(Environment& environment, const ShardOptions& options) {
  const auto shards = shards_of(options);
  if (!shards) return std::unexpected(shards.error());
  const std::string& name = options.name;
  const auto connecting = connect_options(environment);
  if (!connecting) return std::unexpected(connecting.error());
  const auto made = client::create_shards(name, options.map, *shards, *connecting);
  if (!made) return not_made(options, *shards, made.error());
  if (options.json) {
    nlohmann::ordered_json object;
    set_bytes(object, "map", name);
    object["shards"] = shards->size();
    environment.out << object.dump() << '\n';
  } else {
    environment.out << fmt::format("made map '{}' in {} shards\n", cmdline::escaped(name),
                                   shards->size());
  }
  return kOk;
}

/// What stands where a shard's numbers would; empty: nothing is wrong.
std::string wrong_with(const client::ShardReport& shard) {
  const auto unreachable = [&](const Error& error) {
    return error.code == Code::system || error.code == Code::connection_lost;
  };
  if (shard.stats) return shard.agrees ? "" : "it tells another shard map";
  if (unreachable(shard.stats.error())) return "unreachable: " + message(shard.stats.error());
  if (shard.stats.error().code == Code::not_found) return "it has no such map";
  return message(shard.stats.error());
}

std::uint64_t memory_of(const MapStats& stats) {
  return stats.node_bytes + stats.value_bytes + stats.retired_bytes;
}

void print_shards_json(Environment& environment, const std::string& name,
                       const client::ShardingReport& report) {
  for (std::size_t i = 0; i < report.shards.size(); ++i) {
    const client::ShardReport& shard = report.shards[i];
    nlohmann::ordered_json object;
    set_bytes(object, "map", name);
    object["shard"] = i;
    set_bytes(object, "low", shard.shard.low);
    set_bytes(object, "high", shard.high);
    object["at"] = shard.shard.address;
    object["agrees"] = shard.agrees;
    if (shard.stats) {
      object["items"] = shard.stats->items;
      object["memory_bytes"] = memory_of(*shard.stats);
      object["read_version"] = shard.stats->read_version;
    } else {
      object["error"] = std::string(espalier::name(shard.stats.error().code));
    }
    environment.out << object.dump() << '\n';
  }
}

void print_shards_table(Environment& environment, const client::ShardingReport& report) {
  const std::string from = "from";
  std::size_t width = from.size();
  std::size_t address_width = 2;
  for (const client::ShardReport& shard : report.shards) {
    width = std::max(width, shown(shard.shard.low).size());
    address_width = std::max(address_width, shard.shard.address.size());
  }
  environment.out << fmt::format("{:>5}  {:<{}}  {:<{}}  {:>12}  {:>10}\n", "shard", from, width,
                                 "at", address_width, "items", "memory");
  for (std::size_t i = 0; i < report.shards.size(); ++i) {
    const client::ShardReport& shard = report.shards[i];
    environment.out << fmt::format("{:>5}  {:<{}}  {:<{}}", i, shown(shard.shard.low), width,
                                   shard.shard.address, address_width);
    if (shard.stats) {
      environment.out << fmt::format("  {:>12}  {:>10}", format_count(shard.stats->items),
                                     format_bytes(memory_of(*shard.stats)));
    }
    if (const std::string wrong = wrong_with(shard); !wrong.empty()) {
      environment.out << "  " << wrong;
    }
    environment.out << '\n';
  }
}

Outcome<int> status(Environment& environment, const ShardOptions& options) {
  const auto address = required_address(environment, options.at);
  if (!address) return std::unexpected(address.error());
  const std::string& name = options.name;
  const auto connecting = connect_options(environment);
  if (!connecting) return std::unexpected(connecting.error());
  const auto report = client::report_shards(*address, name, *connecting);
  if (!report) {
    const Error& error = report.error();
    if (error == Error{Code::wrong_kind, 0, 0}) {
      return failed(
          fmt::format("map '{}' lies on the node at {} alone", cmdline::escaped(name), *address),
          "espalier shard create makes maps that lie on several.");
    }
    if (error.code == Code::wrong_kind) return other_kind(*address, name, error);
    if (error.code == Code::not_found) {
      return failed(fmt::format("the node at {} has no map '{}'", *address, cmdline::escaped(name)),
                    "espalier map list shows those that it has.");
    }
    if (const auto store = connect(environment, *address); !store) {
      return std::unexpected(store.error());
    }
    return call_failed(fmt::format("ask for the shards of '{}'", cmdline::escaped(name)), error);
  }
  options.json ? print_shards_json(environment, name, *report)
               : print_shards_table(environment, *report);
  const bool all = std::ranges::all_of(
      report->shards, [](const client::ShardReport& shard) { return wrong_with(shard).empty(); });
  return all ? kOk : kFailed;
}

CLI::App& add_shard_work(CLI::App& parent, const std::string& name, const std::string& description,
                         const std::shared_ptr<ShardOptions>& options, Environment& environment,
                         Action& chosen, Outcome<int> (*work)(Environment&, const ShardOptions&)) {
  CLI::App& command = *parent.add_subcommand(name, description);
  command.add_option("NAME", options->name, "Name of the map")->required();
  add_json_option(command, options->json);
  command.callback([options, &environment, &chosen, work] {
    chosen = reporting(environment,
                       [options, &environment, work] { return work(environment, *options); });
  });
  return command;
}

}  // namespace

void add_shard_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<ShardOptions>();
  CLI::App& command =
      *app.add_subcommand("shard", "Make and look at maps that lie on several nodes");
  command.require_subcommand(1);
  command.footer(
      "Examples:\n"
      "  espalier shard create words --shard unix:/tmp/a.sock --shard m=unix:/tmp/b.sock\n"
      "  espalier shard status words --at unix:/tmp/a.sock\n");
  CLI::App& creation =
      add_shard_work(command, "create", "Make an empty map on several nodes, or on none", options,
                     environment, chosen, create_sharded);
  creation
      .add_option("--shard", options->shards,
                  "A node: the first is ADDRESS, each other one BORDER=ADDRESS, and has the keys "
                  "from BORDER on")
      ->required()
      ->type_name("[BORDER=]ADDRESS")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_encoding_option(creation, options->encoding);
  add_map_options(creation, options->map);
  add_size_option(creation, "--snapshot-bytes-max",
                  "Old versions that snapshots may hold (default: 256M)",
                  options->map.snapshot_bytes_max)
      ->group("Map");
  CLI::App& looking =
      add_shard_work(command, "status", "Print each shard's border, node, items and memory",
                     options, environment, chosen, status);
  add_address_option(looking, options->at);
}

}  // namespace espalier::tools

// SPDX-License-Identifier: Apache-2.0
// espalier map list, create, drop: which maps a node has, ordered ones and hash maps.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cmdline/text_codec.hpp"
#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/json_record.hpp"

namespace espalier::tools {
namespace {

struct MapWorkOptions {
  std::optional<std::string> at;
  std::string name;
  bool hashed = false;  // the kind is hash
  MapOptions map;
  HashMapOptions hash;
  std::vector<const CLI::Option*> making;  // say what a new map is like
  bool json = false;
};

using MapWork = Outcome<int> (*)(Environment&, const MapWorkOptions&, Store&,
                                 const std::string& address);

void set_options(nlohmann::ordered_json& object, const MapOptions& options) {
  object["node_bytes"] = options.node_bytes;
  object["log_bytes"] = options.log_bytes;
  object["versions"] = options.versions;
  object["snapshot_bytes_max"] = options.snapshot_bytes_max;
  if (options.durability) object["durability"] = name(*options.durability);
  if (!options.group.empty()) set_bytes(object, "group", options.group);
}

void set_options(nlohmann::ordered_json& object, const HashMapOptions& options) {
  object["kind"] = "hash";
  object["partitions"] = options.partitions;
  object["versions"] = options.versions;
  object["snapshot_bytes_max"] = options.snapshot_bytes_max;
  if (options.durability) object["durability"] = name(*options.durability);
  if (!options.group.empty()) set_bytes(object, "group", options.group);
}

template <class Options>
void print_made(Environment& environment, const MapWorkOptions& options, std::string_view what,
                const Options& made) {
  if (!options.json) {
    environment.out << fmt::format("made {} '{}'\n", what, cmdline::escaped(options.name));
    return;
  }
  nlohmann::ordered_json object;
  set_bytes(object, "map", options.name);
  set_options(object, made);
  environment.out << object.dump() << '\n';
}

Outcome<int> list_hash_maps(Environment& environment, const MapWorkOptions& options, Store& store) {
  const auto listed = store.hash_maps();
  if (!listed) return call_failed("list hash maps", listed.error());
  for (const HashMapDescription& map : *listed) {
    if (!options.json) {
      environment.out << cmdline::escaped(map.name) << '\n';
      continue;
    }
    nlohmann::ordered_json object;
    set_bytes(object, "map", map.name);
    set_options(object, map.options);
    environment.out << object.dump() << '\n';
  }
  return kOk;
}

Outcome<int> list_maps(Environment& environment, const MapWorkOptions& options, Store& store,
                       const std::string& address) {
  if (options.hashed) return list_hash_maps(environment, options, store);
  const auto names = map_names(store);
  if (!names) return std::unexpected(names.error());
  for (const std::string& name : *names) {
    if (!options.json) {
      environment.out << cmdline::escaped(name) << '\n';
      continue;
    }
    const auto map = open_map(store, address, name);
    if (!map) return std::unexpected(map.error());
    nlohmann::ordered_json object;
    set_bytes(object, "map", name);
    set_options(object, map->options());
    environment.out << object.dump() << '\n';
  }
  return kOk;
}

Outcome<int> create_hash_map(Environment& environment, const MapWorkOptions& options, Store& store,
                             const std::string& address) {
  const std::string& name = options.name;
  const auto made = store.create_hash_map(name, options.hash);
  if (!made && made.error().code == Code::already_exists) {
    return name_taken(address, name, made.error());
  }
  if (!made && made.error().code == Code::invalid_argument) {
    return misused(
        fmt::format("no hash map '{}' can be made with these options", cmdline::escaped(name)),
        "A name, and that of a group, has 1 to 255 bytes; --partitions is a power of two from 1 to "
        "512; without versions a map is in no group.");
  }
  if (!made) {
    return call_failed(fmt::format("make hash map '{}'", cmdline::escaped(name)), made.error());
  }
  print_made(environment, options, "hash map", made->options());
  return kOk;
}

Outcome<int> create_map(Environment& environment, const MapWorkOptions& options, Store& store,
                        const std::string& address) {
  const std::string& name = options.name;
  if (auto checked = check_kind(options.making, options.hashed); !checked) {
    return std::unexpected(checked.error());
  }
  if (options.hashed) {
    MapWorkOptions hashed = options;
    hashed.hash.versions = options.map.versions;
    hashed.hash.snapshot_bytes_max = options.map.snapshot_bytes_max;
    hashed.hash.durability = options.map.durability;
    hashed.hash.group = options.map.group;
    return create_hash_map(environment, hashed, store, address);
  }
  const auto made = store.create_map(name, options.map);
  if (!made && made.error().code == Code::already_exists) {
    return name_taken(address, name, made.error());
  }
  if (!made && made.error().code == Code::invalid_argument) {
    return misused(
        fmt::format("no map '{}' can be made with these options", cmdline::escaped(name)),
        "A name, and that of a group, has 1 to 255 bytes; --node-bytes is a power of two from 512 "
        "to 65536, --log-bytes a multiple of 64 up to 2048; without versions a map is in no "
        "group.");
  }
  if (!made && made.error().code == Code::unsupported && options.map.durability) {
    return failed(fmt::format("the node at {} makes no map '{}' of this durability", address,
                              cmdline::escaped(name)),
                  "Durability async and sync are of a node with --data; without versions a map is "
                  "of durability none there. In a chain all maps are sync.");
  }
  if (!made) return call_failed(fmt::format("make map '{}'", cmdline::escaped(name)), made.error());
  print_made(environment, options, "map", made->options());
  return kOk;
}

Outcome<int> drop_map(Environment& environment, const MapWorkOptions& options, Store& store,
                      const std::string& address) {
  const std::string& name = options.name;
  auto dropped = store.drop_map(name);
  const bool hashed = !dropped && is_hash_map(dropped.error());
  if (hashed) dropped = store.drop_hash_map(name);
  if (!dropped && dropped.error().code == Code::not_found) {
    return failed(fmt::format("the node at {} has no map '{}'", address, cmdline::escaped(name)),
                  "espalier map list shows those that it has.");
  }
  if (!dropped && dropped.error().code == Code::wrong_kind) {
    return other_kind(address, name, dropped.error());
  }
  if (!dropped)
    return call_failed(fmt::format("drop map '{}'", cmdline::escaped(name)), dropped.error());
  if (options.json) {
    nlohmann::ordered_json object;
    set_bytes(object, "map", name);
    object["dropped"] = true;
    environment.out << object.dump() << '\n';
  } else {
    environment.out << fmt::format("dropped {} '{}'\n", hashed ? "hash map" : "map",
                                   cmdline::escaped(name));
  }
  return kOk;
}

CLI::App& add_map_work(CLI::App& parent, const std::string& name, const std::string& description,
                       const std::shared_ptr<MapWorkOptions>& options, Environment& environment,
                       Action& chosen, MapWork work) {
  CLI::App& command = *parent.add_subcommand(name, description);
  if (work != list_maps) command.add_option("NAME", options->name, "Name of the map")->required();
  add_json_option(command, options->json);
  add_address_option(command, options->at);
  command.callback([options, &environment, &chosen, work] {
    chosen = reporting(environment, [options, &environment, work]() -> Outcome<int> {
      const auto address = required_address(environment, options->at);
      if (!address) return std::unexpected(address.error());
      auto store = connect(environment, *address);
      if (!store) return std::unexpected(store.error());
      return work(environment, *options, *store, *address);
    });
  });
  return command;
}

}  // namespace

void add_map_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<MapWorkOptions>();
  CLI::App& command = *app.add_subcommand("map", "List, make or drop the maps of a node");
  command.require_subcommand(1);
  command.footer(
      "Examples:\n"
      "  espalier map list --at unix:/run/espalier/espalier.sock\n"
      "  espalier map create --at unix:/run/espalier/espalier.sock words --node-bytes 4096\n"
      "  espalier map create --at unix:/run/espalier/espalier.sock --kind hash sessions\n"
      "  espalier map create --at unix:/run/espalier/espalier.sock --durability none cache\n"
      "  espalier map create --at unix:/run/espalier/espalier.sock --in-group bank accounts\n"
      "  espalier map drop --at unix:/run/espalier/espalier.sock words\n");
  CLI::App& listing = add_map_work(command, "list", "Print the names of all maps of a kind",
                                   options, environment, chosen, list_maps);
  add_kind_option(listing, options->hashed);
  CLI::App& creation = add_map_work(command, "create", "Make an empty map", options, environment,
                                    chosen, create_map);
  add_kind_option(creation, options->hashed);
  options->making = add_map_options(creation, options->map);
  options->making.push_back(add_partitions_option(creation, options->hash));
  add_size_option(creation, "--snapshot-bytes-max",
                  "Old versions that snapshots may hold (default: 256M)",
                  options->map.snapshot_bytes_max)
      ->group("Map");
  add_durability_option(creation, options->map.durability);
  creation
      .add_option("--in-group", options->map.group,
                  "Group whose maps share a clock, so that one transaction may name several")
      ->group("Map");
  add_map_work(command, "drop", "Remove a map and all that is in it", options, environment, chosen,
               drop_map);
}

}  // namespace espalier::tools

// SPDX-License-Identifier: Apache-2.0
#include "tools/data_place.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "channel/rings/known_secret.hpp"
#include "channel/rings/node_address.hpp"
#include "espalier/kind.hpp"
#include "tools/json_record.hpp"
#include "tools/options.hpp"

namespace espalier::tools {
namespace {

Outcome<void> check_inputs(const SourceOptions& options) {
  std::size_t inputs = 0;
  for (const std::string& file : options.files) inputs += file == "-" ? 1 : 0;
  if (inputs > 1) return misused("standard input (-) can be read only once");
  return {};
}

/// "embedded" is an address of the library's, and an empty map: nothing that a command wants.
Outcome<void> check_address(const std::string& address) {
  const auto parsed = client::parse_node_address(address);
  if (parsed) return {};
  return misused(fmt::format("'{}' is no address of a node", address),
                 client::explain_node_address(parsed.error()));
}

Outcome<void> check_not_given(const std::vector<const CLI::Option*>& options, std::string_view what,
                              const SourceOptions& source) {
  for (const CLI::Option* option : options) {
    if (option->count() == 0) continue;
    return misused(fmt::format("{} says {}, and the map is on a node", option->get_name(), what),
                   source.at ? "Leave it out." : "Leave it out, or unset ESPALIER_AT.");
  }
  return {};
}

Outcome<void> check_no_map_name(const SourceOptions& options) {
  if (!options.map_name) return {};
  return misused("--map names a map of a node, and no node is given", "Give --at ADDRESS.");
}

/// No node of a chain has served within the time of a search, or etcd names none.
std::unexpected<Failure> no_head(const std::string& address, const Error& error) {
  constexpr std::string_view kChain = "chain://";
  const std::string place = address.substr(std::min(address.size(), kChain.size()));
  const bool is_in_etcd = place.starts_with("etcd://");
  if (error.code == Code::no_chain) {
    return failed(reason(error),
                  fmt::format("espalier chain status --members {} says more.", place));
  }
  return failed(fmt::format("no node of the chain at {} serves: {}", address, reason(error)),
                fmt::format("espalier chain status --members {} shows what each waits for.",
                            is_in_etcd ? place : "PLACE"));
}

/// What has the name, as its kind says; a later version's kind has no word here.
std::string kind_of(const Error& error) {
  if (error.detail == static_cast<std::uint32_t>(ObjectKind::hash)) return "a hash map";
  if (error.detail == static_cast<std::uint32_t>(ObjectKind::embedding)) {
    return "an embedding table";
  }
  const std::string_view kind =
      error.detail > 255 ? std::string_view() : name(static_cast<ObjectKind>(error.detail));
  return kind.empty() ? "an object of another kind" : fmt::format("a {}", kind);
}

}  // namespace

Outcome<void> check_source(const Environment& environment, const SourceOptions& options) {
  if (options.at && !options.files.empty()) {
    return misused("the data is either in files or on a node",
                   "Give --file or --at, not both; ESPALIER_AT counts only without --file.");
  }
  const auto address = data_address(environment, options);
  if (!address && options.files.empty()) {
    return misused("no data to work on",
                   "Give --file FILE, or --file - for standard input; or --at ADDRESS for a map on "
                   "a node.");
  }
  if (!address && options.access != Access::rpc) {
    const bool by_key = options.access == Access::in_network;
    if (options.access == Access::datagram) {
      return misused("--datagram asks a node, and no node is given",
                     "Give --at ADDRESS, such as --at unix:/run/espalier/espalier.sock.");
    }
    return misused(fmt::format("--{} reads the memory of a node, and no node is given",
                               by_key ? "in-network" : "one-sided"),
                   by_key ? "Give --at ADDRESS, such as --at roce+memif:/run/espalier/packets.sock."
                          : "Give --at ADDRESS, such as --at shm:/run/espalier/fabric.sock.");
  }
  if (!address) {
    if (auto checked = check_no_map_name(options); !checked) return checked;
    return check_inputs(options);
  }
  if (auto checked = check_address(*address); !checked) return checked;
  return check_not_given(options.reading, "how files are read", options);
}

Outcome<void> check_load_source(const Environment& environment, const SourceOptions& options) {
  if (options.files.empty()) {
    return misused("no data to work on", "Give --file FILE, or --file - for standard input.");
  }
  if (auto checked = check_inputs(options); !checked) return checked;
  const auto address = load_address(environment, options);
  if (!address) return check_no_map_name(options);
  if (auto checked = check_address(*address); !checked) return checked;
  return check_nothing_made(options);
}

Outcome<void> check_nothing_made(const SourceOptions& options) {
  return check_not_given(options.making, "what a new map is like", options);
}

std::optional<std::string> data_address(const Environment& environment,
                                        const SourceOptions& options) {
  if (options.at) return options.at;
  return options.files.empty() ? variable(environment, kAddressVariable) : std::nullopt;
}

std::optional<std::string> load_address(const Environment& environment,
                                        const SourceOptions& options) {
  return options.at ? options.at : variable(environment, kAddressVariable);
}

Outcome<std::string> required_address(const Environment& environment,
                                      const std::optional<std::string>& at) {
  auto address = at ? at : variable(environment, kAddressVariable);
  if (!address) {
    return misused("which node?",
                   "Give --at ADDRESS, such as --at unix:/run/espalier/espalier.sock, or set "
                   "ESPALIER_AT.");
  }
  if (auto checked = check_address(*address); !checked) return std::unexpected(checked.error());
  return std::move(*address);
}

Outcome<client::ConnectOptions> connect_options(const Environment& environment) {
  client::ConnectOptions options{.node_user = environment.node_user};
  if (!environment.secret_file) return options;
  auto secret = client::KnownSecret::read_file(*environment.secret_file);
  if (!secret) return failed(secret.error().words, "--secret-file names it.");
  options.secret = std::move(*secret);
  return options;
}

Outcome<Store> connect(const Environment& environment, const std::string& address, Access access) {
  StoreOptions options;
  options.access = access;
  auto connecting = connect_options(environment);
  if (!connecting) return std::unexpected(connecting.error());
  options.secret = client::KnownSecret::handle(std::move(connecting->secret));
  options.node_user = connecting->node_user;
  auto store = environment.connect(address, options);
  if (store) return std::move(*store);
  const Error& error = store.error();
  if (access == Access::in_network && error.code == Code::unsupported &&
      !address.starts_with("roce")) {
    return failed(fmt::format("no READ to {} can carry a key", address),
                  "Switches are on the way of packets: start the node with --node-fabric "
                  "roce+memif:PATH --node-one-sided on, and give --at roce+memif:PATH, the node's "
                  "or a switch's.");
  }
  if (access == Access::datagram && error.code == Code::unsupported) {
    return failed(fmt::format("the node at {} takes no datagrams", address),
                  "Start it with --node-datagrams HOST:PORT; both sides need libcrypto.");
  }
  if (access != Access::rpc && error.code == Code::unsupported) {
    return failed(fmt::format("the node at {} does not offer its memory to be read", address),
                  address.starts_with("unix:")
                      ? "One-sided access goes by shm: or roce: addresses: start the node with "
                        "--node-fabric shm:PATH --node-one-sided on, and give --at shm:PATH."
                      : "Start it with --node-one-sided on; ofi: addresses have no one-sided "
                        "access.");
  }
  const auto node = client::parse_node_address(address);
  const bool over_fabric = node && std::holds_alternative<client::OverFabric>(*node);
  const bool is_chain = node && std::holds_alternative<client::ChainAddress>(*node);
  const std::string path = address.substr(address.find(':') + 1);
  const bool takes_secret = over_fabric || is_chain;
  if (takes_secret && !environment.secret_file && error.code != Code::not_permitted) {
    if (const auto found = client::KnownSecret::of_process(); !found) {
      return failed(found.error().words, "ESPALIER_SECRET_FILE names it.");
    }
  }
  const bool may_serve_later = error.code == Code::system || error.code == Code::connection_lost;
  if (is_chain && (may_serve_later || error.code == Code::no_chain)) {
    return no_head(address, error);
  }
  if (error.code == Code::system && (error.detail == ENOENT || error.detail == ECONNREFUSED)) {
    return failed(fmt::format("no node listens at {}", address),
                  over_fabric ? fmt::format("Start one: espalier serve --node-fabric {}", address)
                              : fmt::format("Start one: espalier serve --node-socket {}", path));
  }
  if (error == Error{Code::system, 0, ETIMEDOUT}) {
    return failed(fmt::format("nobody answers at {}", address),
                  "Is the node running there, and does the network let its packets through? Of a "
                  "socket on a veth, behind a switch, it does after ethtool -K IFACE "
                  "tx-checksumming off tx-udp-segmentation off at both ends.");
  }
  if (error.code == Code::system && error.detail == EACCES) {
    return failed(fmt::format("not allowed to connect to {}", address),
                  "Permissions of the socket (node.socket_mode) and of its folder say who is.");
  }
  if (error.code == Code::invalid_argument && !over_fabric && !is_chain) {
    return misused(fmt::format("'{}' is no path of a socket", path),
                   fmt::format("It has {} bytes; a path may have {}.", path.size(), error.detail));
  }
  return failed(fmt::format("cannot connect to {}: {}", address, reason(error)));
}

Outcome<Map> open_map(const Store& store, const std::string& address, const std::string& name) {
  auto map = store.open_map(name);
  if (map) return *map;
  if (map.error().code == Code::wrong_kind) return other_kind(address, name, map.error());
  if (map.error().code != Code::not_found) {
    return call_failed(fmt::format("open map '{}'", name), map.error());
  }
  return failed(fmt::format("the node at {} has no map '{}'", address, name),
                "espalier map list shows those that it has; espalier map create makes one.");
}

Outcome<std::vector<std::string>> map_names(const Store& store) {
  auto names = store.map_names();
  if (!names) return call_failed("list maps", names.error());
  return std::move(*names);
}

Outcome<std::vector<std::string>> hash_map_names(const Store& store) {
  const auto listed = store.hash_maps();
  if (!listed) return call_failed("list hash maps", listed.error());
  std::vector<std::string> names;
  for (const HashMapDescription& map : *listed) names.push_back(map.name);
  return names;
}

Outcome<MapStats> stats_of(const Map& map) {
  const auto stats = map.stats();
  if (stats) return *stats;
  return call_failed(fmt::format("ask for the numbers of map '{}'", cmdline::escaped(map.name())),
                     stats.error());
}

Outcome<HashMapStats> stats_of(const HashMap& map) {
  const auto stats = map.stats();
  if (stats) return *stats;
  return call_failed(
      fmt::format("ask for the numbers of hash map '{}'", cmdline::escaped(map.name())),
      stats.error());
}

bool is_hash_map(const Error& error) {
  return error == Error{Code::wrong_kind, 0, static_cast<std::uint32_t>(ObjectKind::hash)};
}

Outcome<std::variant<Map, HashMap>> open_any_map(const Store& store, const std::string& address,
                                                 const std::string& name) {
  const auto opened = store.open_map(name);
  if (opened) return *opened;
  if (is_hash_map(opened.error())) {
    const auto hashed = store.open_hash_map(name);
    if (hashed) return *hashed;
  }
  const auto map = open_map(store, address, name);
  if (!map) return std::unexpected(map.error());
  return *map;
}

Outcome<AnyMap> open_any_data(Environment& environment, const SourceOptions& options) {
  const auto address = data_address(environment, options);
  if (!address) {
    auto data = load_clean(environment, options);
    if (!data) return std::unexpected(std::move(data.error()));
    return AnyMap{std::move(data->store), data->map, data->report.has_values};
  }
  auto store = connect(environment, *address, options.access);
  if (!store) return std::unexpected(std::move(store.error()));
  auto map = open_any_map(*store, *address, options.map_name.value_or(std::string(kDefaultMap)));
  if (!map) return std::unexpected(std::move(map.error()));
  return AnyMap{std::move(*store), *std::move(map)};
}

Outcome<Dataset> open_data(Environment& environment, const SourceOptions& options) {
  const auto address = data_address(environment, options);
  if (!address) return load_clean(environment, options);
  auto store = connect(environment, *address, options.access);
  if (!store) return std::unexpected(std::move(store.error()));
  auto map = open_map(*store, *address, options.map_name.value_or(std::string(kDefaultMap)));
  if (!map) return std::unexpected(std::move(map.error()));
  LoadReport report;
  report.has_values = true;
  return Dataset{std::move(*store), *map, std::move(report)};
}

std::unexpected<Failure> name_taken(const std::string& address, const std::string& name,
                                    const Error& error) {
  return failed(fmt::format("the node at {} has {} '{}' already", address, kind_of(error),
                            encode(name, Encoding::escaped)),
                "Take another name, or drop that one first.");
}

std::unexpected<Failure> other_kind(const std::string& address, const std::string& name,
                                    const Error& error) {
  return failed(fmt::format("'{}' of the node at {} is {}", encode(name, Encoding::escaped),
                            address, kind_of(error)),
                "espalier list shows all that it has, with kinds.");
}

std::unexpected<Failure> call_failed(const std::string& what, const Error& error) {
  return failed(fmt::format("cannot {}: {}", what, reason(error)));
}

}  // namespace espalier::tools

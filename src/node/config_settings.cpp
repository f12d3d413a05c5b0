// SPDX-License-Identifier: Apache-2.0
#include "node/config_settings.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/nearest.hpp"
#include "base/unix_address.hpp"
#include "kinds/map/format/node.hpp"

namespace espalier::node {
namespace {

constexpr std::uint64_t kKiB = std::uint64_t{1} << 10;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

template <class T>
void assign(T& to, const Value& value) {
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, bool>) {
    to = std::get<T>(value);
  } else {
    to = static_cast<T>(std::get<std::uint64_t>(value));
  }
}

template <class T>
Value value_of(const T& from) {
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, bool>) {
    return from;
  } else {
    return static_cast<std::uint64_t>(from);
  }
}

/// A row of the table, for the field at `path`.
template <class Owner, auto... path>
constexpr SettingOf<Owner> row(std::string_view key, Rule rule, std::string_view fallback,
                               std::string_view what, bool live = false) {
  return {key,
          rule,
          fallback,
          what,
          [](Owner& owner, const Value& value) { assign((owner.*....*path), value); },
          [](const Owner& owner) { return value_of((owner.*....*path)); },
          live};
}

using NodeSettings = Config::Node;
using Memory = Config::Memory;
using Clients = Config::Clients;
using Data = Config::Data;
constexpr Rule kToggle{Kind::toggle};
constexpr bool kLive = true;  // Node::change() adopts it

constexpr std::array kSettings{
    row<Config, &Config::node, &NodeSettings::socket>(
        "node.socket", {Kind::path, 1, base::UnixAddress::kNameMax}, "/run/espalier/espalier.sock",
        "The UNIX socket where clients on this machine connect."),
    row<Config, &Config::node, &NodeSettings::socket_mode>(
        "node.socket_mode", {Kind::mode, 0, 0777}, "0600",
        "Permissions of the socket: who may write to it may connect.", kLive),
    row<Config, &Config::node, &NodeSettings::place>(
        "node.place", {Kind::place}, "host",
        "Whether it has maps of its own, or is a device before those of node.host."),
    row<Config, &Config::node, &NodeSettings::host>(
        "node.host", {Kind::fabric, 0, 4096}, "none",
        "Of a device, where its host listens, such as shm:/run/espalier/fabric."),
    row<Config, &Config::node, &NodeSettings::secret_file>(
        "node.secret_file", {Kind::path, 0, 4096}, "none",
        "Of a device, the file with the name and secret by which it comes to its host; none: that "
        "of ESPALIER_SECRET_FILE."),
    row<Config, &Config::node, &NodeSettings::cache>(
        "node.cache", {Kind::bytes, 0, std::uint64_t{1} << 40}, "64MiB",
        "Of a device, how much each worker remembers of interior nodes of its host's maps, and as "
        "much "
        "of bins and records of its hash maps."),
    row<Config, &Config::node, &NodeSettings::balance>(
        "node.balance", {Kind::count, 0, 1000}, "0",
        "Of a device under load, for how many bytes that it takes of its own memory it reads one "
        "of the host's, though it need not, while that has room; 0: it never does."),
    row<Config, &Config::node, &NodeSettings::fabric>(
        "node.fabric", {Kind::fabric, 0, 4096}, "none",
        "Where clients on other machines connect, such as roce://192.0.2.1/1; more with spaces "
        "between."),
    row<Config, &Config::node, &NodeSettings::datagrams>(
        "node.datagrams", {Kind::host_port, 0, 64}, "none",
        "Where gets come as datagrams of UDP, such as 192.0.2.1:4758 or [2001:db8::1]:4758, from "
        "clients that are connected."),
    row<Config, &Config::node, &NodeSettings::one_sided>(
        "node.one_sided", kToggle, "false",
        "Whether clients that come by shm: or roce: may "
        "read the memory of maps themselves; who may "
        "read one map may then read all."),
    row<Config, &Config::node, &NodeSettings::shared_clock>(
        "node.shared_clock", kToggle, "false",
        "Whether ordered maps and hash maps that keep versions, and name no group, share one "
        "clock, so that a transaction may name several of them."),
    row<Config, &Config::node, &NodeSettings::cores>("node.cores", {Kind::count, 1, 64}, "1",
                                                     "Worker threads."),
    row<Config, &Config::node, &NodeSettings::helpers>(
        "node.helpers", {Kind::count, 0, 64}, "0",
        "Helper threads, for queries and other long work; 0: as many as workers."),
    row<Config, &Config::node, &NodeSettings::pin>(
        "node.pin", kToggle, "false", "Whether each worker stays on a core of its own."),
    row<Config, &Config::node, &NodeSettings::spin_us>(
        "node.spin_us", {Kind::count, 0, 1'000'000}, "50",
        "Microseconds for which a worker without work looks for some before it sleeps.", kLive),
    row<Config, &Config::node, &NodeSettings::sweep_ms>(
        "node.sweep_ms", {Kind::count, 1, 10'000}, "10",
        "Milliseconds after which a worker looks at every ring, whatever its doorbell says.",
        kLive),
    row<Config, &Config::node, &NodeSettings::sweep_asleep_ms>(
        "node.sweep_asleep_ms", {Kind::count, 1, 60'000}, "1000",
        "Milliseconds after which a sleeping worker wakes to look at every ring.", kLive),
    row<Config, &Config::memory, &Memory::limit>("memory.limit",
                                                 {Kind::memory, 64 * kMiB, kNoLimit}, "75%",
                                                 "Memory that all maps together may use."),
    row<Config, &Config::memory, &Memory::huge_pages>(
        "memory.huge_pages", kToggle, "true",
        "Whether to use huge pages: explicit ones where there are some, else transparent ones."),
    row<Config, &Config::clients, &Clients::secrets>(
        "clients.secrets", {Kind::path, 0, 4096}, "none",
        "The file of those who may come to node.fabric, with the secrets that they must prove."),
    row<Config, &Config::clients, &Clients::open>(
        "clients.open", kToggle, "false",
        "Whether, without such a file, whoever reaches an address of a network may do all."),
    row<Config, &Config::clients, &Clients::connections_max>(
        "clients.connections_max", {Kind::count, 1, 65'536}, "10000",
        "Connections at a time; more are turned away. One in 16, 64 at most, is kept for the "
        "node's own user, root, and secrets of the role admin."),
    row<Config, &Config::clients, &Clients::principal_connections_max>(
        "clients.principal_connections_max", {Kind::count, 0, 65'536}, "0",
        "Connections of one secret, user or address, but for those for whom some are kept; 0: half "
        "of clients.connections_max."),
    row<Config, &Config::clients, &Clients::ring_bytes_max>(
        "clients.ring_bytes_max", {Kind::bytes, 0, 64 * kGiB}, "0B",
        "Memory of the rings of all connections together, of which one secret, user or address has "
        "half at most; as it fills, those who come get smaller rings. 0: a quarter of "
        "memory.limit, and at least 32MiB."),
    row<Config, &Config::clients, &Clients::in_flight_max>(
        "clients.in_flight_max", {Kind::count, 1, 256}, "256",
        "Requests of one connection that may be in flight."),
    row<Config, &Config::clients, &Clients::response_bytes_max>(
        "clients.response_bytes_max", {Kind::bytes, 64 * kKiB, kGiB}, "4MiB",
        "Answers that may wait to be read, of one thread of a client."),
    row<Config, &Config::clients, &Clients::message_bytes_max>(
        "clients.message_bytes_max", {Kind::bytes, 68 * kMiB, 64 * kGiB}, "256MiB",
        "Memory for large requests and for answers that wait, of all connections together."),
    row<Config, &Config::clients, &Clients::stuck_seconds>(
        "clients.stuck_seconds", {Kind::count, 1, 86'400}, "30",
        "When that memory runs short, who holds some and did nothing for so long is ended.", kLive),
    row<Config, &Config::clients, &Clients::resume_seconds>(
        "clients.resume_seconds", {Kind::count, 1, 86'400}, "60",
        "How long what a client has in flight is kept for it when the fabric has lost it."),
    row<Config, &Config::data, &Data::dir>(
        "data.dir", {Kind::path, 0, 4096}, "none",
        "The folder where what is acknowledged is kept: it is there again after a crash. None: in "
        "memory alone."),
    row<Config, &Config::data, &Data::log_bytes_max>(
        "data.log_bytes_max", {Kind::bytes, 256 * kMiB, 1024 * kGiB}, "16GiB",
        "How long the log in that folder may grow; then writes wait until a checkpoint has made it "
        "shorter."),
    row<Config, &Config::data, &Data::checkpoint_log_bytes>(
        "data.checkpoint_log_bytes", {Kind::bytes, 64 * kMiB, 1024 * kGiB}, "1GiB",
        "A checkpoint is begun after so many bytes of that log, or at half its bound if that is "
        "less."),
    row<Config, &Config::data, &Data::waiting_max>(
        "data.waiting_max", {Kind::count, 1, 65'536}, "1024",
        "Answers of one connection that may wait for the disk; then nothing more is taken from it "
        "until some are given."),
    row<Config, &Config::data, &Data::durability>(
        "data.durability", {Kind::durability}, "sync",
        "When writes are answered: sync, once they are on the disk; async, at once, so that a "
        "crash may lose the newest."),
    row<Config, &Config::data, &Data::async_ms>(
        "data.async_ms", {Kind::count, 20, 600'000}, "1000",
        "Of async, milliseconds: while something waits for the disk for longer, no write is "
        "taken."),
    row<Config, &Config::data, &Data::on_log_error>(
        "data.on_log_error", {Kind::on_log_error}, "serve",
        "What a node does whose log can be written no more: serve reads, or exit."),
    row<Config, &Config::data, &Data::persistent_memory>(
        "data.persistent_memory", kToggle, "false",
        "The folder lies on persistent memory (DAX), or, as a model of it, on a tmpfs: the log is "
        "written there by stores past the cache."),
    row<Config, &Config::data, &Data::persistent_regions>(
        "data.persistent_regions", kToggle, "false",
        "With data.persistent_memory: regions lie in the folder, are written past the cache, and "
        "keep their bytes."),
    row<Config, &Config::metrics, &Config::Metrics::port>(
        "metrics.port", {Kind::count, 0, 65'535}, "0",
        "TCP port of the loopback interface that serves metrics; 0 serves none.", kLive),
    row<Config, &Config::log, &Config::Log::level>(
        "log.level", {Kind::level}, "info", "The least important messages that are logged.", kLive),
};

constexpr std::array kMapSettings{
    row<MapConfig, &MapConfig::name>("name", {Kind::name, 1, 64}, "default",
                                     "What clients call the map; there is no default in a file."),
    row<MapConfig, &MapConfig::options, &MapOptions::node_bytes>(
        "node_bytes", {Kind::bytes, wire::kNodeBytesMin, wire::kNodeBytesMax, Shape::power_of_two},
        "8KiB", "Size of a tree node."),
    row<MapConfig, &MapConfig::options, &MapOptions::log_bytes>(
        "log_bytes", {Kind::bytes, 0, wire::kLogBytesMax, Shape::multiple_of_64}, "512B",
        "Size of a leaf's log block."),
    row<MapConfig, &MapConfig::options, &MapOptions::versions>(
        "versions", kToggle, "true",
        "Whether old versions are kept, which consistent scans and snapshots need."),
    row<MapConfig, &MapConfig::options, &MapOptions::snapshot_bytes_max>(
        "snapshot_bytes_max", {Kind::bytes, 0, 1024 * kGiB}, "256MiB",
        "Old versions that snapshots may hold."),
};

constexpr std::string_view kVariablePrefix = "ESPALIER_";

/// Lower case, with '_' in place of every separator.
std::string plain_name(std::string_view name) {
  std::string result(name);
  for (char& c : result) {
    c = c == '.' || c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

std::string without_section(std::string_view key) {
  return std::string(key.substr(key.find('.') + 1));
}

/// The most similar candidate; else the one whose part after the section is.
std::string nearest_of(std::string_view name, std::span<const std::string> candidates) {
  std::vector<std::string> wholes;
  std::vector<std::string> parts;
  for (const std::string& candidate : candidates) {
    wholes.push_back(plain_name(candidate));
    parts.push_back(plain_name(without_section(candidate)));
  }
  const std::string whole = base::nearest(plain_name(name), wholes);
  const std::string part = base::nearest(plain_name(without_section(name)), parts);
  const auto at = whole.empty() ? std::ranges::find(parts, part) - parts.begin()
                                : std::ranges::find(wholes, whole) - wholes.begin();
  return whole.empty() && part.empty() ? "" : candidates[static_cast<std::size_t>(at)];
}

std::vector<std::string> keys() {
  std::vector<std::string> result;
  for (const Setting& setting : kSettings) result.emplace_back(setting.key);
  return result;
}

}  // namespace

std::span<const Setting> settings() { return kSettings; }

std::span<const MapSetting> map_settings() { return kMapSettings; }

std::string variable_name(std::string_view key) {
  std::string name(kVariablePrefix);
  for (const char c : plain_name(key)) {
    name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

std::string flag_name(std::string_view key) {
  std::string name = "--" + plain_name(key);
  std::ranges::replace(name, '_', '-');
  return name;
}

bool is_variable_of_others(std::string_view name) {
  // ESPALIER_AT and ESPALIER_NODE_USER select the node of a command, ESPALIER_ISA limits the tree's
  // kernels; the others belong to tests and scripts, those of ./run by prefix.
  constexpr std::array<std::string_view, 18> kOthers{
      "ESPALIER_AT",         "ESPALIER_ISA",          "ESPALIER_SEED",      "ESPALIER_STEPS",
      "ESPALIER_FUZZ_RUNS",  "ESPALIER_FUZZ_SECONDS", "ESPALIER_JOBS",      "ESPALIER_LOAD_SECONDS",
      "ESPALIER_SEEDS",      "ESPALIER_TEST_SET",     "ESPALIER_FEW_SEEDS", "ESPALIER_BUDGETS",
      "ESPALIER_NODE_USER",  "ESPALIER_SECRET_FILE",  "ESPALIER_ETCD_FILE", "ESPALIER_WRITE_FRAMES",
      "ESPALIER_LONG_SEEDS", "ESPALIER_KEEP_FOLDER"};
  return name.starts_with("ESPALIER_RUN_") || std::ranges::find(kOthers, name) != kOthers.end();
}

std::string nearest_key(std::string_view key) { return nearest_of(key, keys()); }

std::string nearest_section(std::string_view section) {
  std::vector<std::string> sections{std::string(kMapKey), std::string(kPeersSection)};
  for (const Setting& setting : kSettings) {
    const std::string name(setting.key.substr(0, setting.key.find('.')));
    if (sections.back() != name) sections.push_back(name);
  }
  const std::string found = nearest_of(section, sections);
  if (found.empty()) return "";
  return found == kMapKey ? "[[" + found + "]]" : "[" + found + "]";
}

std::string nearest_map_key(std::string_view key) {
  std::vector<std::string> names;
  for (const MapSetting& setting : kMapSettings) names.emplace_back(setting.key);
  return nearest_of(key, names);
}

std::string nearest_variable(std::string_view name) {
  std::vector<std::string> candidates = keys();
  candidates.emplace_back("maps");
  candidates.emplace_back(kPeersSection);
  candidates.emplace_back(kFileKey);
  if (name.starts_with(kVariablePrefix)) name.remove_prefix(kVariablePrefix.size());
  const std::string key = nearest_of(name, candidates);
  return key.empty() ? "" : variable_name(key);
}

std::string nearest_flag(std::string_view key) {
  std::vector<std::string> candidates = keys();
  candidates.emplace_back(kMapKey);
  candidates.emplace_back(kPeerKey);
  candidates.emplace_back(kFileKey);
  const std::string found = nearest_of(key, candidates);
  return found.empty() ? "" : flag_name(found);
}

}  // namespace espalier::node

// SPDX-License-Identifier: Apache-2.0
// espalier stats: numbers about the objects of a node, and about the node.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "tools/asked_numbers.hpp"
#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/json_record.hpp"
#include "tools/json_stats.hpp"
#include "tools/numbers.hpp"
#include "tools/shown_samples.hpp"

namespace espalier::tools {
namespace {

struct StatsOptions {
  std::optional<std::string> at;
  std::optional<std::string> map_name;
  std::optional<std::string> table_name;
  std::optional<std::string> object_name;
  bool json = false;
};

std::string holder_line(const memory::Holder& holder) {
  if (holder.kind == memory::Holder::Kind::snapshot) {
    return fmt::format("snapshot of {} at version {} by {}: {}",
                       encode(holder.object, Encoding::escaped), format_count(holder.since),
                       encode(holder.owner, Encoding::escaped), format_bytes(holder.bytes));
  }
  return fmt::format("{} {} of {}: {}", memory::name_of(holder.kind), holder.since,
                     encode(holder.owner, Encoding::escaped), format_bytes(holder.bytes));
}

constexpr NumberLine kMemoryLines[] = {
    {"all         {memory_taken_bytes} of {memory_limit_bytes} taken, {memory_held_bytes} given by "
     "the system"},
    {"free        {memory_free_bytes} of what is taken, for buffers of the sizes it was cut for"},
    {"leases      {leases} hold {memory_leased_bytes}, with {dropped_maps} dropped maps of "
     "{memory_dropped_bytes}",
     true},
    {"snapshots   {snapshots} hold {snapshot_bytes} of {snapshot_limit_bytes}, "
     "{snapshots_expired} expired; {principal_snapshots_limit} of one principal at most"},
};
constexpr NumberLine kWorkLines[] = {
    {"queries     {queries_running} running, {queries_waiting} waiting, {queries_ended} ended, "
     "{queries_failed} failed, {queries_refused} refused"},
    {"helpers     {helper_threads} threads, worked {helper_busy_nanoseconds}, {helper_steps} "
     "steps; jobs: {helper_jobs:ready} ready, {helper_jobs:running} running, "
     "{helper_jobs:waiting} waiting, {helper_jobs_refused} refused"},
    {"by key      {index_reads:no_table} READs met no table; tables sent {index_reads:leaf} to "
     "leaves, {index_reads:interior_node} to nodes above, {index_reads:nothing} nowhere",
     true},
    {"device      {device_round_trips} round trips to its host, {device_read_bytes} read; cache "
     "{device_remembered_bytes}, asked {device_descents} times, knew {device_hits}; "
     "{device_forwarded} reads by the host"},
    {"log         {log_handed_over_sequence} records, {log_durable_sequence} of them on the disk; "
     "{log_bytes} of {log_limit_bytes}"},
    {"checkpoints {checkpoints} finished, {checkpoints_failed} failed"},
    {"            the last one {checkpoint_last_records} records, {checkpoint_last_bytes}"},
    {"chain       epoch {chain_epoch}, {chain_members} members; records up to "
     "{chain_held_sequence}, of which all have {chain_acknowledged_sequence}"},
};
constexpr NumberLine kPlaceLines[] = {
    {"pending     {pending_connections} of {pending_connections_limit} at the socket, "
     "{user_pending_connections_limit} of one user at most"},
    {"rings       {ring_bytes} of {ring_limit_bytes}, {principal_ring_limit_bytes} of one "
     "principal at most"},
};
constexpr NumberLine kAccessLines[] = {
    {"roce        {connection_cookies:sent} cookies sent, {connection_cookies:accepted} accepted, "
     "{connection_cookies:refused} refused; {connection_messages_shed} messages too many; "
     "{packets_dropped:foreign} packets not from the peer, {packets_dropped:out_of_window} out of "
     "the window",
     true},
    {"access      {authentications:accepted} peers authenticated, {authentications:wrong_proof} "
     "wrong proofs, {authentications:failed} failed, {authentications:timed_out} timed out, "
     "{authentications:limited} beyond the limit, {pending_peers} pending; {requests_denied} "
     "requests denied; {audit_left_out} records not kept"},
    {"datagrams   {datagram_sessions} sessions; {datagrams:answered} gets answered, "
     "{datagrams:by_ring} left to rings, {datagrams:challenged} addresses asked, "
     "{datagrams:dropped} dropped, of which {datagrams_limited} were too many"},
};

std::optional<std::string> filled_of(const NumberLine& line, const node::NodeNumbers& numbers) {
  return filled(line, [&](std::string_view name, std::string_view label_value) {
    return numbers.sample(name, label_value);
  });
}

void print_lines(std::ostream& out, std::span<const NumberLine> lines,
                 const node::NodeNumbers& numbers) {
  for (const NumberLine& line : lines) {
    if (const auto text = filled_of(line, numbers)) out << *text << '\n';
  }
}

void print_connections(std::ostream& out, const node::NodeNumbers& numbers) {
  std::uint64_t connected = 0;
  for (const node::WorkerNumbers& worker : numbers.workers) connected += worker.connections;
  const NumberLine line{
      " of {connections_limit}, {principal_connections_limit} of one principal at most, "
      "{connections_kept} kept for who runs the node; {connections_limited} beyond a limit"};
  out << "connections " << format_count(connected) << filled_of(line, numbers).value_or("") << '\n';
  print_lines(out, kPlaceLines, numbers);
  for (const node::PrincipalNumbers& principal : numbers.principals) {
    out << fmt::format("principal   {}: {} connections, {} of rings, {} snapshots\n",
                       encode(principal.name, Encoding::escaped),
                       format_count(principal.connections), format_bytes(principal.ring_bytes),
                       format_count(principal.snapshots));
  }
  const std::uint64_t all = numbers.value("principals");
  if (!numbers.principals.empty() && all > numbers.principals.size()) {
    out << fmt::format("            and {} others\n",
                       format_count(all - numbers.principals.size()));
  }
}

void print_node(std::ostream& out, const node::NodeNumbers& numbers) {
  print_lines(out, kMemoryLines, numbers);
  for (const memory::Holder& holder : numbers.holders) {
    out << "held by     " << holder_line(holder) << '\n';
  }
  print_lines(out, kWorkLines, numbers);
  if (!numbers.log_failure.empty()) {
    out << fmt::format("log failed  nothing is acknowledged any more: {}\n",
                       encode(numbers.log_failure, Encoding::escaped));
  }
  print_connections(out, numbers);
  print_lines(out, kAccessLines, numbers);
}

nlohmann::ordered_json node_json(const node::NodeNumbers& numbers) {
  nlohmann::ordered_json object;
  for (const char* const group :
       {"memory", "queries", "helpers", "index_reads", "snapshots", "connections", "epochs", "roce",
        "datagrams", "device", "log", "chain", "access"}) {
    auto members = group_json(numbers, group);
    if (!members.is_null()) object[group] = std::move(members);
  }
  object["memory"]["holders"] = nlohmann::ordered_json::array();
  for (const auto& holder : numbers.holders) {
    object["memory"]["holders"].push_back(holder_json(holder));
  }
  object["principals"] = nlohmann::ordered_json::array();
  for (const auto& of : numbers.principals) object["principals"].push_back(principal_json(of));
  if (!numbers.log_failure.empty()) set_bytes(object["log"], "failure", numbers.log_failure);
  return object;
}

/// Prints one part after the other, with an empty line between them where people read.
class Parts {
 public:
  Parts(Environment& environment, bool json) : out_(environment.out), json_(json) {}

  /// Of whatever kind.
  void object(const wire::SampledObject& object) {
    begin();
    if (!json_) return print_object(out_, object);
    out_ << (has_members(object.kind) ? members_json(object) : object_json(object)).dump() << '\n';
  }
  /// Of how many there is nothing more.
  void left_out(std::uint64_t objects) {
    if (objects == 0) return;
    begin();
    if (!json_) {
      out_ << fmt::format("left out    {} objects that take less memory; --object NAME shows one\n",
                          format_count(objects));
      return;
    }
    nlohmann::ordered_json object;
    object["objects_left_out"] = objects;
    out_ << object.dump() << '\n';
  }
  void node(const node::NodeNumbers& numbers) {
    begin();
    if (!json_) return print_node(out_, numbers);
    out_ << node_json(numbers).dump() << '\n';
  }

 private:
  void begin() {
    if (!std::exchange(first_, false) && !json_) out_ << '\n';
  }

  std::ostream& out_;
  bool json_;
  bool first_ = true;
};

/// Of an ordered map the numbers of all its shards, of which the node has one.
Outcome<void> add_shards(wire::SampledObject& object, const Store& store,
                         const std::string& address) {
  if (object.kind != ObjectKind::map) return {};
  const auto opened = open_any_map(store, address, object.name);
  if (!opened) return std::unexpected(opened.error());
  const Map* const map = std::get_if<Map>(&*opened);
  if (map == nullptr) return {};  // it was dropped, and made anew as another kind
  const auto stats = stats_of(*map);
  if (!stats) return std::unexpected(stats.error());
  nlohmann::ordered_json members;
  set_stats(members, *stats);
  for (wire::Sample& sample : object.samples) {
    if (members.contains(sample.name)) sample.value = members[sample.name];
  }
  return {};
}

/// One object by its name, of one of these kinds; none: of whatever kind.
Outcome<int> print_object(Parts& parts, const std::string& name, const Store& store,
                          const std::string& address, std::string_view called = {},
                          std::span<const ObjectKind> kinds = {}) {
  auto object = samples_of(store, address, name);
  if (!object) return std::unexpected(object.error());
  if (!kinds.empty() && std::ranges::find(kinds, object->kind) == kinds.end()) {
    return failed(fmt::format("the node at {} has no {} '{}'", address, called,
                              encode(name, Encoding::escaped)),
                  "espalier list shows all that it has, with kinds.");
  }
  if (const auto added = add_shards(*object, store, address); !added) {
    return std::unexpected(added.error());
  }
  parts.object(*object);
  return kOk;
}

Outcome<int> print_stats(Environment& environment, const StatsOptions& options) {
  const auto address = required_address(environment, options.at);
  if (!address) return std::unexpected(address.error());
  const auto store = connect(environment, *address);
  if (!store) return std::unexpected(store.error());
  Parts parts(environment, options.json);
  constexpr ObjectKind kMaps[] = {ObjectKind::map, ObjectKind::hash};
  constexpr ObjectKind kTables[] = {ObjectKind::table};
  if (options.map_name)
    return print_object(parts, *options.map_name, *store, *address, "map", kMaps);
  if (options.table_name) {
    return print_object(parts, *options.table_name, *store, *address, "table", kTables);
  }
  if (options.object_name) return print_object(parts, *options.object_name, *store, *address);
  const auto numbers = numbers_of(*store, *address);
  if (!numbers) return std::unexpected(numbers.error());
  auto objects = samples_of_all(*store, *address);
  if (!objects) return std::unexpected(objects.error());
  std::ranges::sort(objects->objects, {},
                    [](const wire::SampledObject& of) { return std::tuple(of.kind, of.name); });
  for (wire::SampledObject& object : objects->objects) {
    if (const auto added = add_shards(object, *store, *address); !added) {
      return std::unexpected(added.error());
    }
    parts.object(object);
  }
  parts.left_out(objects->left_out());
  if (*numbers) parts.node(**numbers);
  return kOk;
}

}  // namespace

void add_stats_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<StatsOptions>();
  CLI::App& command =
      *app.add_subcommand("stats", "Print numbers about the objects of a node, and its memory");
  add_json_option(command, options->json);
  add_address_option(command, options->at);
  add_map_name_option(command, options->map_name);
  command.get_option("--map")->description(
      "Print numbers of this map only, and none of the memory");
  add_name_option(command, "--table", "Print numbers of this table only", options->table_name)
      ->excludes("--map");
  add_name_option(command, "--object", "Print the samples of this object only, whatever its kind",
                  options->object_name);
  command.footer(
      "Examples:\n"
      "  espalier stats --at unix:/run/espalier/espalier.sock\n"
      "  espalier stats --at unix:/run/espalier/espalier.sock --map words --json\n"
      "  espalier stats --at unix:/run/espalier/espalier.sock --table sales\n"
      "  espalier stats --at unix:/run/espalier/espalier.sock --object sales --json\n");
  command.callback([options, &environment, &chosen] {
    // Not by excludes(): help has more than one of them in any order.
    if (options->object_name && (options->map_name || options->table_name)) {
      throw CLI::ValidationError("--object", "goes with neither --map nor --table");
    }
    chosen = reporting(environment,
                       [options, &environment] { return print_stats(environment, *options); });
  });
}

}  // namespace espalier::tools

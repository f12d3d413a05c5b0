// SPDX-License-Identifier: Apache-2.0
// espalier stats: numbers about the maps, tables and sequencers of a node, and samples of objects
// of all kinds that node_stats does not tell.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
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

/// What is known of a map's feed; nothing where the node does not tell.
using Feed = std::optional<wire::FeedNumbers>;

void print_stats_json(std::ostream& out, const std::string& name, const MapStats& stats,
                      const Feed& feed) {
  nlohmann::ordered_json object;
  set_bytes(object, "map", name);
  set_stats(object, stats);
  if (feed) object["feed"] = feed_json(*feed);
  out << object.dump() << '\n';
}

void print_stats_text(std::ostream& out, const std::string& name, const MapStats& stats,
                      const Feed& feed) {
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
  if (feed && (feed->followers != 0 || feed->entries != 0)) {
    out << fmt::format("feed        {} followers, {} moves told, {} gaps\n",
                       format_count(feed->followers), format_count(feed->entries),
                       format_count(feed->gaps));
  }
}

void print_stats_json(std::ostream& out, const node::SequencerNumbers& sequencer) {
  nlohmann::ordered_json object;
  set_bytes(object, "sequencer", sequencer.name);
  set_stats(object, sequencer.facts);
  out << object.dump() << '\n';
}

void print_stats_text(std::ostream& out, const node::SequencerNumbers& sequencer) {
  const wire::SequencerFacts& facts = sequencer.facts;
  const bool overwritten = (facts.flags & wire::kSequencerOverwritten) != 0;
  const bool sealed = (facts.flags & wire::kSequencerIsSealed) != 0;
  out << fmt::format("sequencer   {}\n", encode(sequencer.name, Encoding::escaped));
  out << fmt::format("epoch       {}, from {}, next {}{}\n", facts.epoch, format_count(facts.first),
                     format_count(facts.next),
                     overwritten ? ", overwritten" : (sealed ? ", sealed" : ""));
  out << fmt::format("asked       {} times, answered by {} adds\n", format_count(facts.requests),
                     format_count(facts.adds));
}

/// The memory of all objects, and who keeps some of it from being free.
nlohmann::ordered_json memory_json(const node::NodeNumbers& numbers) {
  nlohmann::ordered_json object;
  object["taken_bytes"] = numbers.memory_taken_bytes;
  object["limit_bytes"] = numbers.memory_limit_bytes;
  object["system_bytes"] = numbers.memory_held_bytes;
  object["free_bytes"] = numbers.memory_free_bytes;
  object["leases"] = numbers.leases;
  object["leased_bytes"] = numbers.leased_bytes;
  object["dropped_maps"] = numbers.dropped_maps;
  object["dropped_bytes"] = numbers.dropped_bytes;
  object["holders"] = nlohmann::ordered_json::array();
  for (const auto& holder : numbers.holders) object["holders"].push_back(holder_json(holder));
  return object;
}

void print_stats_json(std::ostream& out, const node::TableNumbers& table) {
  nlohmann::ordered_json object;
  set_bytes(object, "table", table.name);
  set_stats(object, table.stats);
  out << object.dump() << '\n';
}

std::string queries_text(const wire::QueryTotals& queries) {
  return fmt::format("{} running, {} waiting, {} ended, {} failed, {} refused",
                     format_count(queries.running), format_count(queries.waiting),
                     format_count(queries.ended), format_count(queries.failed),
                     format_count(queries.refused));
}

void print_stats_text(std::ostream& out, const node::TableNumbers& table) {
  const wire::TableNumbers& stats = table.stats;
  out << fmt::format("table       {}\n", encode(table.name, Encoding::escaped));
  out << fmt::format("rows        {} of {} bytes\n", format_count(stats.rows), stats.row_bytes);
  out << fmt::format("memory      {} in {} pages\n", format_bytes(stats.memory_bytes),
                     format_count(stats.pages));
  out << fmt::format("queries     {}\n", queries_text(stats.queries));
  out << fmt::format("read        {} rows, {}; sent {} rows, {}\n", format_count(stats.rows_read),
                     format_bytes(stats.bytes_read), format_count(stats.rows_sent),
                     format_bytes(stats.bytes_sent));
}

std::string holder_line(const memory::Holder& holder) {
  if (holder.kind == memory::Holder::Kind::snapshot) {
    return fmt::format("snapshot of {} at version {} by {}: {}",
                       encode(holder.object, Encoding::escaped), format_count(holder.since),
                       encode(holder.owner, Encoding::escaped), format_bytes(holder.bytes));
  }
  return fmt::format("{} {} of {}: {}", memory::name_of(holder.kind), holder.since,
                     encode(holder.owner, Encoding::escaped), format_bytes(holder.bytes));
}

void print_memory(std::ostream& out, const node::NodeNumbers& numbers) {
  out << fmt::format("all         {} of {} taken, {} given by the system\n",
                     format_bytes(numbers.memory_taken_bytes),
                     format_bytes(numbers.memory_limit_bytes),
                     format_bytes(numbers.memory_held_bytes));
  out << fmt::format("free        {} of what is taken, for buffers of the sizes it was cut for\n",
                     format_bytes(numbers.memory_free_bytes));
  if (numbers.leases != 0 || numbers.dropped_maps != 0) {
    out << fmt::format("leases      {} hold {}, with {} dropped maps of {}\n",
                       format_count(numbers.leases), format_bytes(numbers.leased_bytes),
                       format_count(numbers.dropped_maps), format_bytes(numbers.dropped_bytes));
  }
  const wire::SnapshotTotals& snapshots = numbers.snapshots;
  out << fmt::format("snapshots   {} hold {} of {}, {} expired; {} of one principal at most\n",
                     format_count(snapshots.count), format_bytes(snapshots.bytes),
                     format_bytes(snapshots.bytes_max), format_count(snapshots.expired),
                     format_count(snapshots.principal_max));
  for (const memory::Holder& holder : numbers.holders) {
    out << "held by     " << holder_line(holder) << '\n';
  }
}

void print_helpers(std::ostream& out, const node::NodeNumbers& numbers) {
  const wire::HelperTotals& helpers = numbers.helpers;
  out << fmt::format("queries     {}\n", queries_text(numbers.queries));
  out << fmt::format(
      "helpers     {} threads, worked {}, {} steps; jobs: {} ready, {} running, {} "
      "waiting, {} refused\n",
      format_count(helpers.threads), format_nanoseconds(static_cast<double>(helpers.busy_ns)),
      format_count(helpers.steps), format_count(helpers.ready), format_count(helpers.running),
      format_count(helpers.waiting), format_count(helpers.refused));
}

void print_index_reads(std::ostream& out, const node::NodeNumbers& numbers) {
  const wire::IndexReadTotals& reads = numbers.index_reads;
  if (reads.resolved + reads.leaves + reads.interior + reads.nothing == 0) return;
  out << fmt::format(
      "by key      {} READs met no table; tables sent {} to leaves, {} to nodes above, {} "
      "nowhere\n",
      format_count(reads.resolved), format_count(reads.leaves), format_count(reads.interior),
      format_count(reads.nothing));
}

void print_access(std::ostream& out, const node::NodeNumbers& numbers) {
  const wire::AccessTotals& access = numbers.access;
  out << fmt::format(
      "access      {} peers authenticated, {} wrong proofs, {} failed, {} timed out, {} beyond the "
      "limit, {} pending; {} requests denied; {} records not kept\n",
      format_count(access.authenticated), format_count(access.wrong_proofs),
      format_count(access.failed), format_count(access.timed_out), format_count(access.limited),
      format_count(access.pending), format_count(access.denied),
      format_count(access.audit_left_out));
}

void print_device(std::ostream& out, const node::NodeNumbers& numbers) {
  const wire::DeviceTotals& device = numbers.device;
  if (device.is_device == 0) return;
  out << fmt::format(
      "device      {} round trips to its host, {} read; cache {}, asked {} times, knew {}; {} "
      "reads by the host\n",
      format_count(device.round_trips), format_bytes(device.bytes),
      format_bytes(device.remembered_bytes), format_count(device.descents),
      format_count(device.hits), format_count(device.forwarded));
}

void print_log(std::ostream& out, const node::NodeNumbers& numbers) {
  const wire::LogTotals& log = numbers.log;
  if (log.is_there == 0) return;
  out << fmt::format("log         {} records, {} of them on the disk; {} of {}\n",
                     format_count(log.handed_over), format_count(log.durable),
                     format_bytes(log.bytes), format_bytes(log.bytes_max));
  const wire::DataTotals& data = numbers.data;
  std::string last;
  if (data.checkpoints != 0) {
    last = fmt::format("; the last one {} records, {}", format_count(data.checkpoint_records),
                       format_bytes(data.checkpoint_bytes));
  }
  out << fmt::format("checkpoints {} finished, {} failed{}\n", format_count(data.checkpoints),
                     format_count(data.checkpoints_failed), last);
  if (log.failed == 0) return;
  out << fmt::format("log failed  nothing is acknowledged any more: {}\n",
                     encode(numbers.log_failure, Encoding::escaped));
}

void print_connections(std::ostream& out, const node::NodeNumbers& numbers) {
  const wire::ConnectionTotals& of = numbers.connections;
  std::uint64_t connected = 0;
  for (const node::WorkerNumbers& worker : numbers.workers) connected += worker.connections;
  out << fmt::format(
      "connections {} of {}, {} of one principal at most, {} kept for who runs the node; {} beyond "
      "a limit\n",
      format_count(connected), format_count(of.connections_max), format_count(of.principal_max),
      format_count(of.kept), format_count(of.limited));
  out << fmt::format("pending     {} of {} at the socket, {} of one user at most\n",
                     format_count(of.pending), format_count(of.pending_max),
                     format_count(of.user_pending_max));
  out << fmt::format("rings       {} of {}, {} of one principal at most\n",
                     format_bytes(of.ring_bytes), format_bytes(of.ring_bytes_max),
                     format_bytes(of.principal_ring_bytes_max));
  for (const node::PrincipalNumbers& principal : numbers.principals) {
    out << fmt::format("principal   {}: {} connections, {} of rings, {} snapshots\n",
                       encode(principal.name, Encoding::escaped),
                       format_count(principal.connections), format_bytes(principal.ring_bytes),
                       format_count(principal.snapshots));
  }
  const std::uint64_t untold = numbers.principal_totals.count - numbers.principals.size();
  if (!numbers.principals.empty() && numbers.principal_totals.count > numbers.principals.size()) {
    out << fmt::format("            and {} others\n", format_count(untold));
  }
}

void print_connects(std::ostream& out, const node::NodeNumbers& numbers) {
  const wire::ConnectTotals& of = numbers.connects;
  if (of.cookies_sent + of.cookies_accepted + of.cookies_refused + of.messages_shed + of.foreign +
          of.out_of_window ==
      0) {
    return;
  }
  out << fmt::format(
      "roce        {} cookies sent, {} accepted, {} refused; {} messages too many; {} packets not "
      "from the peer, {} out of the window\n",
      format_count(of.cookies_sent), format_count(of.cookies_accepted),
      format_count(of.cookies_refused), format_count(of.messages_shed), format_count(of.foreign),
      format_count(of.out_of_window));
}

/// Prints one part after the other, with an empty line between them where people read.
class Parts {
 public:
  Parts(Environment& environment, bool json) : out_(environment.out), json_(json) {}

  void map(const std::string& name, const MapStats& stats, const Feed& feed) {
    begin();
    json_ ? print_stats_json(out_, name, stats, feed) : print_stats_text(out_, name, stats, feed);
  }
  void sequencer(const node::SequencerNumbers& sequencer) {
    begin();
    json_ ? print_stats_json(out_, sequencer) : print_stats_text(out_, sequencer);
  }
  void table(const node::TableNumbers& table) {
    begin();
    json_ ? print_stats_json(out_, table) : print_stats_text(out_, table);
  }
  /// Of whatever kind.
  void object(const wire::SampledObject& object) {
    begin();
    if (!json_) return print_object(out_, object);
    out_ << object_json(object).dump() << '\n';
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
    if (!json_) {
      print_memory(out_, numbers);
      print_helpers(out_, numbers);
      print_index_reads(out_, numbers);
      print_device(out_, numbers);
      print_log(out_, numbers);
      print_connections(out_, numbers);
      print_connects(out_, numbers);
      print_access(out_, numbers);
      return;
    }
    nlohmann::ordered_json object;
    object["memory"] = memory_json(numbers);
    object["queries"] = queries_json(numbers.queries);
    object["helpers"] = helpers_json(numbers.helpers);
    object["index_reads"] = index_reads_json(numbers.index_reads);
    object["snapshots"] = snapshots_json(numbers.snapshots);
    object["connections"] = connections_json(numbers.connections);
    object["principals"] = nlohmann::ordered_json::array();
    for (const auto& of : numbers.principals) object["principals"].push_back(principal_json(of));
    object["roce"] = connects_json(numbers.connects);
    if (numbers.device.is_device != 0) object["device"] = device_json(numbers.device);
    if (numbers.log.is_there != 0) object["log"] = log_json(numbers);
    object["access"] = access_json(numbers.access);
    out_ << object.dump() << '\n';
  }

 private:
  void begin() {
    if (!std::exchange(first_, false) && !json_) out_ << '\n';
  }

  std::ostream& out_;
  bool json_;
  bool first_ = true;
};

Outcome<int> print_stats_of_table(Parts& parts, const std::string& name, const Store& store,
                                  const std::string& address) {
  const auto numbers = needed_numbers_of(store, address);
  if (!numbers) return std::unexpected(numbers.error());
  if (numbers->device.is_device != 0) {
    return failed(
        fmt::format("the device at {} has numbers of its own and none of tables", address),
        "Ask its host.");
  }
  const auto found = std::ranges::find(numbers->tables, name, &node::TableNumbers::name);
  if (found == numbers->tables.end()) {
    return failed(
        fmt::format("the node at {} has no table '{}'", address, encode(name, Encoding::escaped)),
        "espalier list shows all that it has, with kinds.");
  }
  parts.table(*found);
  return kOk;
}

Feed feed_of(const std::optional<node::NodeNumbers>& numbers, const std::string& name) {
  if (!numbers) return std::nullopt;
  const auto found = std::ranges::find(numbers->maps, name, &node::MapNumbers::name);
  return found == numbers->maps.end() ? Feed() : Feed(found->feed);
}

Outcome<int> print_object(Parts& parts, const std::string& name, const Store& store,
                          const std::string& address) {
  const auto object = samples_of(store, address, name);
  if (!object) return std::unexpected(object.error());
  parts.object(*object);
  return kOk;
}

Outcome<int> print_stats(Environment& environment, const StatsOptions& options) {
  const auto address = required_address(environment, options.at);
  if (!address) return std::unexpected(address.error());
  const auto store = connect(environment, *address);
  if (!store) return std::unexpected(store.error());
  Parts parts(environment, options.json);
  if (options.table_name) return print_stats_of_table(parts, *options.table_name, *store, *address);
  if (options.object_name) return print_object(parts, *options.object_name, *store, *address);
  const auto asked = numbers_of(*store, *address);
  if (!asked) return std::unexpected(asked.error());
  const std::optional<node::NodeNumbers>& numbers = *asked;
  const auto names =
      options.map_name ? Outcome<std::vector<std::string>>({*options.map_name}) : map_names(*store);
  if (!names) return std::unexpected(names.error());
  for (const std::string& name : *names) {
    const auto opened = open_any_map(*store, *address, name);
    if (!opened) return std::unexpected(opened.error());
    if (std::holds_alternative<HashMap>(*opened)) {
      return print_object(parts, name, *store, *address);
    }
    const auto stats = stats_of(std::get<Map>(*opened));
    if (!stats) return std::unexpected(stats.error());
    parts.map(name, *stats, feed_of(numbers, name));
  }
  if (options.map_name) return kOk;
  if (numbers) {
    for (const node::TableNumbers& table : numbers->tables) parts.table(table);
    for (const node::SequencerNumbers& sequencer : numbers->sequencers) parts.sequencer(sequencer);
  }
  const auto others =
      numbers ? other_samples_of(*store, *address) : samples_but_of_maps(*store, *address);
  if (others) {
    for (const wire::SampledObject& object : others->objects) parts.object(object);
    parts.left_out(others->left_out());
  }
  if (numbers) parts.node(*numbers);
  if (!others) return std::unexpected(others.error());
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

// SPDX-License-Identifier: Apache-2.0
// espalier stats: numbers about the maps, tables and sequencers of a node, and samples of objects
// of all kinds that node_stats does not tell.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
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

/// A line of what is told of the node as a whole. Between braces stand names of its numbers, of
/// those with a label the label's value behind a colon.
struct NumberLine {
  std::string_view text;
  bool is_news = false;  ///< it is left out where all its numbers are 0
};

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
};

/// Nothing where the node does not tell all its numbers, or they are no news.
std::optional<std::string> filled(const NumberLine& line, const node::NodeNumbers& numbers) {
  std::string text;
  bool is_news = false;
  for (std::string_view rest = line.text; !rest.empty();) {
    const std::size_t open = rest.find('{');
    text += rest.substr(0, open);
    if (open == std::string_view::npos) break;
    rest.remove_prefix(open + 1);
    const std::size_t end = rest.find('}');
    const std::string_view wanted = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    const std::size_t colon = wanted.find(':');
    const wire::Sample* const sample = numbers.sample(
        wanted.substr(0, colon),
        colon == std::string_view::npos ? std::string_view() : wanted.substr(colon + 1));
    if (sample == nullptr) return std::nullopt;
    is_news = is_news || sample->value != 0;
    text += shown_value(*sample);
  }
  if (line.is_news && !is_news) return std::nullopt;
  return text;
}

void print_lines(std::ostream& out, std::span<const NumberLine> lines,
                 const node::NodeNumbers& numbers) {
  for (const NumberLine& line : lines) {
    if (const auto text = filled(line, numbers)) out << *text << '\n';
  }
}

void print_connections(std::ostream& out, const node::NodeNumbers& numbers) {
  std::uint64_t connected = 0;
  for (const node::WorkerNumbers& worker : numbers.workers) connected += worker.connections;
  const NumberLine line{
      " of {connections_limit}, {principal_connections_limit} of one principal at most, "
      "{connections_kept} kept for who runs the node; {connections_limited} beyond a limit"};
  out << "connections " << format_count(connected) << filled(line, numbers).value_or("") << '\n';
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
        "device", "log", "chain", "access"}) {
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

Outcome<int> print_stats_of_table(Parts& parts, const std::string& name, const Store& store,
                                  const std::string& address) {
  const auto numbers = needed_numbers_of(store, address);
  if (!numbers) return std::unexpected(numbers.error());
  if (is_device(*numbers)) {
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

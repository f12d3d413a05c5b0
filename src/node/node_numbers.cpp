// SPDX-License-Identifier: Apache-2.0
// Where the numbers about a node come from.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/process_id.hpp"
#include "catalog/samples.hpp"
#include "engine/peer_posts.hpp"
#include "kinds/map/offload/held_snapshots.hpp"
#include "kinds/map/offload/map_services.hpp"
#include "kinds/map/offload/maps_elsewhere.hpp"
#include "kinds/map/write/map_core.hpp"
#include "kinds/map/write/map_stats.hpp"
#include "kinds/table/offload/table_services.hpp"
#include "kinds/table/table.hpp"
#include "node/chain_node.hpp"
#include "node/metrics.hpp"
#include "node/node.hpp"

namespace espalier::node {
namespace {

/// When the machine was started, in seconds since 1970; 0 if nobody tells.
double boot_time_seconds() {
  std::ifstream file("/proc/stat");
  std::string word;
  double seconds = 0;
  while (file >> word) {
    if (word == "btime" && file >> seconds) return seconds;
    std::getline(file, word);
  }
  return 0;
}

/// When this process was started, in seconds since the machine was; 0 if nobody tells.
double process_start_after_boot() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const auto stat = base::parse_process_stat(line);
  const long ticks_per_second = ::sysconf(_SC_CLK_TCK);
  if (!stat || ticks_per_second <= 0) return 0;
  return static_cast<double>(stat->start_ticks) / static_cast<double>(ticks_per_second);
}

void add_offloads(NodeNumbers& numbers, const Node& node) {
  for (const offload::Offload& offload : offload::all_offloads()) {
    const auto id = static_cast<std::size_t>(offload.id);
    OffloadNumbers sum;
    sum.id = offload.id;
    sum.name = offload.name;
    for (const auto& worker : node.workers()) {
      const offload::SchedulerCounts& counts = worker->scheduler_counts();
      sum.requests += counts.requests[id].load(std::memory_order_relaxed);
      sum.durations += counts.durations[id].read();
    }
    numbers.offloads.push_back(sum);
  }
}

void add_workers(NodeNumbers& numbers, const Node& node) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  for (const auto& worker : node.workers()) {
    const WorkerCounts& counts = worker->counts();
    const offload::SchedulerCounts& scheduler = worker->scheduler_counts();
    const offload::ClientCounts& clients = worker->client_counts();
    numbers.workers.push_back({scheduler.in_flight.load(kRelaxed), counts.clients.load(kRelaxed),
                               counts.sleeps.load(kRelaxed), counts.wake_ups.load(kRelaxed)});
    numbers.refused += scheduler.refused.load(kRelaxed);
    numbers.client_wakes += clients.wakes.load(kRelaxed);
    numbers.unannounced += clients.sweeps_found.load(kRelaxed);
  }
}

void add_maps(NodeNumbers& numbers, const Node& node) {
  for (const catalog::EntryPointer& entry : node.catalog().list(ObjectKind::map)) {
    const auto& map = static_cast<const tree::MapCore&>(*entry->object);
    const tree::MappingFeed::Numbers feed = map.table.feed().numbers();
    numbers.maps.push_back(
        {entry->name, tree::stats_of(map), {feed.entries, feed.gaps, feed.followers}});
  }
}

wire::QueryTotals totals_of(const table::QueryCounts& counts) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  return {counts.running.load(kRelaxed), counts.waiting.load(kRelaxed), counts.ended.load(kRelaxed),
          counts.failed.load(kRelaxed), counts.refused.load(kRelaxed)};
}

void add_tables(NodeNumbers& numbers, const Node& node) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  for (const catalog::EntryPointer& entry : node.catalog().list(ObjectKind::table)) {
    const auto& table = static_cast<const table::Table&>(*entry->object);
    const table::TableStats stats = table.stats();
    const table::QueryCounts& counts = table.query_counts();
    numbers.tables.push_back(
        {entry->name,
         {stats.rows, stats.pages, stats.row_bytes, stats.memory_bytes, totals_of(counts),
          counts.rows_read.load(kRelaxed), counts.bytes_read.load(kRelaxed),
          counts.rows_sent.load(kRelaxed), counts.bytes_sent.load(kRelaxed)}});
  }
  numbers.queries = totals_of(node.services().part<offload::TableServices>().query_counts);
  numbers.result_buffer_bytes =
      node.services().part<offload::TableServices>().result_buffer_bytes.load(kRelaxed);
}

void add_sequencers(NodeNumbers& numbers, const Node& node) {
  for (const catalog::EntryPointer& entry : node.catalog().list(ObjectKind::sequencer)) {
    SequencerNumbers sequencer{.name = entry->name};
    const std::string facts = entry->object->description();  // its SequencerFacts
    ESPALIER_ASSERT(facts.size() == sizeof sequencer.facts);
    std::memcpy(&sequencer.facts, facts.data(), sizeof sequencer.facts);
    numbers.sequencers.push_back(std::move(sequencer));
  }
  numbers.sequencer_count = numbers.sequencers.size();
  if (numbers.sequencer_count <= wire::kSequencersTold) return;
  const auto requests = [](const SequencerNumbers& of) { return of.facts.requests; };
  std::ranges::nth_element(numbers.sequencers, numbers.sequencers.begin() + wire::kSequencersTold,
                           std::ranges::greater(), requests);
  numbers.sequencers.resize(wire::kSequencersTold);
}

void add_device(NodeNumbers& numbers, const Node& node) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const auto* const elsewhere = node.services().parts.find<offload::NodeMapsElsewhere>();
  if (elsewhere == nullptr) return;
  DeviceNumbers& device = numbers.device;
  device.is_device = 1;
  for (const offload::MapsElsewhere* const maps : elsewhere->of_scheduler) {
    const offload::ElsewhereCounts& counts = maps->counts();
    device.round_trips += counts.round_trips.load(kRelaxed);
    device.bytes += counts.bytes.load(kRelaxed);
    device.descents += counts.descents.load(kRelaxed);
    device.hits += counts.hits.load(kRelaxed);
    device.remembered_bytes += counts.remembered_bytes.load(kRelaxed);
    device.balanced += counts.balanced.load(kRelaxed);
    device.forwarded += counts.forwarded.load(kRelaxed);
    device.feed_reads += counts.feed_reads.load(kRelaxed);
    device.feed_changes += counts.feed_changes.load(kRelaxed);
    device.feed_replaced += counts.feed_replaced.load(kRelaxed);
    device.feed_behind += counts.feed_behind.load(kRelaxed);
  }
}

void add_access(NodeNumbers& numbers, const Node& node) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  wire::AccessTotals& access = numbers.access;
  access.denied = node.services().denied.load(kRelaxed);
  access.audit_left_out = node.services().audit.left_out();
  const auto add = [&](const offload::AuthenticationCounts& counts) {
    access.authenticated += counts.accepted.load(kRelaxed);
    access.wrong_proofs += counts.wrong.load(kRelaxed);
    access.failed += counts.failed.load(kRelaxed);
    access.timed_out += counts.timed_out.load(kRelaxed);
    access.limited += counts.limited.load(kRelaxed);
    access.pending += counts.pending.load(kRelaxed);
  };
  add(node.authentication_counts());
  for (const auto& worker : node.workers()) {
    for (const auto& fabric : worker->fabrics()) {
      const offload::FabricCounts& asked = fabric->counts();
      numbers.connects.cookies_sent += asked.cookies_sent.load(kRelaxed);
      numbers.connects.cookies_accepted += asked.cookies_accepted.load(kRelaxed);
      numbers.connects.cookies_refused += asked.cookies_refused.load(kRelaxed);
      numbers.connects.messages_shed += asked.messages_shed.load(kRelaxed);
      numbers.connects.foreign += asked.foreign.load(kRelaxed);
      numbers.connects.out_of_window += asked.out_of_window.load(kRelaxed);
      if (fabric->authentication_counts() != nullptr) add(*fabric->authentication_counts());
    }
  }
}

/// How near it is to what one principal may have, of what it is nearest to.
double part_of(const PrincipalNumbers& of, const NodeNumbers& numbers) {
  const auto part = [](std::uint64_t has, std::uint64_t most) {
    return static_cast<double>(has) / static_cast<double>(std::max<std::uint64_t>(most, 1));
  };
  const wire::ConnectionTotals& limits = numbers.connections;
  return std::max({part(of.connections, limits.principal_max),
                   part(of.ring_bytes, limits.principal_ring_bytes_max),
                   part(of.snapshots, numbers.snapshots.principal_max)});
}

void add_places(NodeNumbers& numbers, const Node& node) {
  const offload::ConnectionLimits& limits = node.services().connections;
  const memory::Reclaimer::Snapshots snapshots = node.store().reclaimer.snapshots();
  numbers.snapshots = {snapshots.count,
                       snapshots.bytes,
                       snapshots.bytes_max,
                       snapshots.expired,
                       offload::HeldSnapshots::kPrincipalMost,
                       offload::HeldSnapshots::kMost};
  const offload::ConnectionLimits::Numbers places = limits.numbers();
  numbers.connections = {.connections_max = places.connections_max,
                         .principal_max = places.principal_max,
                         .limited = places.refused,
                         .pending = node.connections_pending(),
                         .ring_bytes = places.ring_bytes,
                         .ring_bytes_max = places.ring_bytes_max,
                         .principal_ring_bytes_max = places.principal_ring_bytes_max,
                         .kept = places.kept,
                         .pending_max = Listener::kPendingMax,
                         .user_pending_max = Listener::kUserPendingMax};
  wire::PrincipalTotals& totals = numbers.principal_totals;
  for (const offload::PrincipalRef& account : node.services().principals.all()) {
    const auto taken = limits.taken_by(*account);
    const auto* const snapshots_of = account->parts.find<offload::SnapshotShare>();
    const std::uint64_t held =
        snapshots_of == nullptr ? 0 : snapshots_of->held.load(std::memory_order_relaxed);
    if (taken.count == 0 && held == 0) continue;
    ++totals.count;
    totals.connections_most = std::max<std::uint64_t>(totals.connections_most, taken.count);
    totals.ring_bytes_most = std::max(totals.ring_bytes_most, taken.ring_bytes);
    totals.snapshots_most = std::max(totals.snapshots_most, held);
    numbers.principals.push_back({account->name, taken.count, taken.ring_bytes, held});
  }
  std::ranges::sort(numbers.principals, std::ranges::greater(),
                    [&](const PrincipalNumbers& of) { return part_of(of, numbers); });
  if (numbers.principals.size() > wire::kPrincipalsTold) {
    numbers.principals.resize(wire::kPrincipalsTold);
  }
}

void add_helpers(NodeNumbers& numbers, const Node& node) {
  const offload::HelperNumbers now = node.services().helpers.numbers();
  numbers.helpers = {now.threads,    now.ready,           now.running, now.waiting, now.steps,
                     now.long_steps, now.longest_step_ns, now.busy_ns, now.refused};
}

void add_log(NodeNumbers& numbers, const Node& node) {
  if (node.data() == nullptr) return;
  const log::LogWriter& writer = node.data()->writer();
  // First what is durable, which is never above the other.
  const std::uint64_t durable = writer.durable();
  numbers.log_failure = writer.failure();
  numbers.log = {.is_there = 1,
                 .durable = durable,
                 .handed_over = writer.handed_over(),
                 .bytes = writer.bytes(),
                 .bytes_max = node.config().data.log_bytes_max,
                 .failed = numbers.log_failure.empty() ? 0U : 1U,
                 .failure_bytes = numbers.log_failure.size()};
  numbers.data.recovered_records = node.data()->applied_records();
  numbers.data.recovered_bytes = node.data()->applied_bytes();
  numbers.data.recovered_ns = node.data()->applied_ns();
  if (node.checkpoints() == nullptr) return;
  const CheckpointCounts& counts = node.checkpoints()->counts();
  numbers.data.checkpoints = counts.finished;
  numbers.data.checkpoints_failed = counts.failed;
  numbers.data.checkpoint_records = counts.last_records;
  numbers.data.checkpoint_bytes = counts.last_bytes;
  numbers.data.checkpoint_ns = counts.last_ns;
}

wire::IndexReadTotals totals_of(const offload::IndexReadCounts& counts) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  return {counts.resolved.load(kRelaxed), counts.leaves.load(kRelaxed),
          counts.interior.load(kRelaxed), counts.nothing.load(kRelaxed)};
}

}  // namespace

NodeNumbers numbers_of(const Node& node) {
  static const double after_boot = process_start_after_boot();
  static const double started = boot_time_seconds() + after_boot;
  NodeNumbers numbers;
  numbers.version = ESPALIER_VERSION;
  numbers.start_time_seconds = started;
  const double uptime_ns = static_cast<double>(base::boot_ns()) - after_boot * 1e9;
  numbers.uptime_ns = static_cast<std::uint64_t>(std::max(uptime_ns, 0.0));
  add_offloads(numbers, node);
  add_workers(numbers, node);
  numbers.connections_refused = node.connections_refused();
  const tree::StoreCore& store = node.store();
  numbers.memory_taken_bytes = store.region.taken_bytes();
  numbers.memory_limit_bytes = store.region.limit_bytes();
  numbers.memory_held_bytes = store.region.memory_bytes();
  numbers.memory_free_bytes = store.pool.free_bytes();
  numbers.leases = store.leases.size();
  numbers.leased_bytes = store.reclaimer.bytes_held_by_leases() + store.dropped.bytes();
  numbers.dropped_maps = store.dropped.size();  // no other kind waits for leases
  numbers.dropped_bytes = store.dropped.bytes();
  numbers.holders = store.reclaimer.holders(
      [&store](std::uint64_t epoch) { return store.dropped.bytes_held_since(epoch); });
  numbers.long_message_bytes = node.services().budget.used();
  numbers.long_message_limit_bytes = node.config().clients.message_bytes_max;
  numbers.epoch_oldest = store.epochs.oldest();
  numbers.epoch = store.epochs.current();  // after the oldest, which is not to be above it
  numbers.epoch_participants = store.epochs.participants();
  numbers.epoch_participants_limit = store.epochs.participants_max();
  add_maps(numbers, node);
  add_tables(numbers, node);
  add_sequencers(numbers, node);
  add_device(numbers, node);
  add_log(numbers, node);
  add_helpers(numbers, node);
  numbers.index_reads = totals_of(node.services().part<offload::MapServices>().index_reads);
  add_access(numbers, node);
  add_places(numbers, node);
  return numbers;
}

NodeNumbers numbers_and_samples_of(const Node& node) {
  NodeNumbers numbers = numbers_of(node);
  if (const auto* const peers = node.services().parts.find<offload::NodePeers>()) {
    for (std::size_t i = 0; i < peers->peers.size(); ++i) {
      numbers.peers.push_back({peers->peers[i].name, peers->totals(i)});
    }
  }
  if (node.chain() != nullptr) numbers.chain = node.chain()->numbers();
  numbers.sampled = catalog::samples_of(node.catalog(), {.beyond_node_stats = true});
  return numbers;
}

}  // namespace espalier::node

// SPDX-License-Identifier: Apache-2.0
// The sources of a node's counters.
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/process_id.hpp"
#include "catalog/samples.hpp"
#include "engine/peer_posts.hpp"
#include "kinds/map/offload/held_snapshots.hpp"
#include "kinds/map/offload/map_services.hpp"
#include "kinds/map/offload/maps_elsewhere.hpp"
#include "kinds/table/offload/table_services.hpp"
#include "node/chain_node.hpp"
#include "node/metrics.hpp"
#include "node/node.hpp"
#include "node/reading.hpp"

namespace espalier::node {
namespace {

/// When the machine booted, in seconds since 1970; 0 if unknown.
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

/// When this process started, in seconds since boot; 0 if unknown.
double process_start_after_boot() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const auto stat = base::parse_process_stat(line);
  const long ticks_per_second = ::sysconf(_SC_CLK_TCK);
  if (!stat || ticks_per_second <= 0) return 0;
  return static_cast<double>(stat->start_ticks) / static_cast<double>(ticks_per_second);
}

NodeNumbers numbers_of_process() {
  static const double after_boot = process_start_after_boot();
  static const double started = boot_time_seconds() + after_boot;
  NodeNumbers numbers;
  numbers.version = ESPALIER_VERSION;
  numbers.start_time_seconds = started;
  const double uptime_ns = static_cast<double>(base::boot_ns()) - after_boot * 1e9;
  numbers.uptime_ns = static_cast<std::uint64_t>(std::max(uptime_ns, 0.0));
  return numbers;
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
    numbers.workers.push_back({scheduler.in_flight.load(kRelaxed), counts.clients.load(kRelaxed),
                               counts.sleeps.load(kRelaxed), counts.wake_ups.load(kRelaxed)});
  }
}

/// How near the principal is to its limits: the largest fraction.
double part_of(const PrincipalNumbers& of, const Reading& reading) {
  const auto part = [](std::uint64_t has, std::uint64_t most) {
    return static_cast<double>(has) / static_cast<double>(std::max<std::uint64_t>(most, 1));
  };
  return std::max({part(of.connections, reading.places.principal_max),
                   part(of.ring_bytes, reading.places.principal_ring_bytes_max),
                   part(of.snapshots, offload::HeldSnapshots::kPrincipalMost)});
}

void add_principals(NodeNumbers& numbers, Reading& reading) {
  numbers.principals = std::move(reading.all_principals);
  std::ranges::sort(numbers.principals, std::ranges::greater(),
                    [&](const PrincipalNumbers& of) { return part_of(of, reading); });
  if (numbers.principals.size() > wire::kPrincipalsTold) {
    numbers.principals.resize(wire::kPrincipalsTold);
  }
}

}  // namespace

Reading::Reading(const Node& of)
    : node(of),
      store(of.store()),
      tables(of.services().part<offload::TableServices>()),
      index_reads(of.services().part<offload::MapServices>().index_reads),
      epoch_oldest(store.epochs.oldest()),
      epoch(store.epochs.current()),
      places(of.services().connections.numbers()),
      helpers(of.services().helpers.numbers()),
      snapshots(store.reclaimer.snapshots()) {
  if (of.data() != nullptr) log_failure = of.data()->writer().failure();
  if (of.chain() != nullptr) chain = of.chain()->numbers();
  for (const catalog::EntryPointer& entry : of.catalog().list()) {
    ++objects_of_kind[static_cast<std::uint8_t>(entry->kind)];
    ++objects_of_kind[static_cast<std::uint8_t>(ObjectKind::any)];
  }
  for (const offload::PrincipalRef& account : of.services().principals.all()) {
    const auto taken = of.services().connections.taken_by(*account);
    const auto* const share = account->parts.find<offload::SnapshotShare>();
    const std::uint64_t held = share == nullptr ? 0 : share->held.load(std::memory_order_relaxed);
    if (taken.count == 0 && held == 0) continue;
    ++principals.count;
    principals.connections_most = std::max<std::uint64_t>(principals.connections_most, taken.count);
    principals.ring_bytes_most = std::max(principals.ring_bytes_most, taken.ring_bytes);
    principals.snapshots_most = std::max(principals.snapshots_most, held);
    all_principals.push_back({account->name, taken.count, taken.ring_bytes, held});
  }
}

NodeNumbers numbers_of_recovery(const RecoveryProgress& progress) {
  NodeNumbers numbers = numbers_of_process();
  numbers.set("recovered_records", progress.records);
  numbers.set("recovered_bytes", progress.bytes);
  numbers.set("recovery_expected_bytes", progress.bytes_max);
  numbers.set("recovery_nanoseconds", progress.ns);
  return numbers;
}

NodeNumbers numbers_of(const Node& node) {
  NodeNumbers numbers = numbers_of_process();
  Reading reading(node);
  for (const NodeNumber& number : node_numbers()) {
    if (number.read == nullptr) continue;
    if (const Told value = number.read(reading)) {
      numbers.samples.push_back(sample_of(number, *value));
    }
  }
  numbers.log_failure = reading.log_failure;
  numbers.holders = node.store().reclaimer.holders(
      [&](std::uint64_t epoch) { return node.store().dropped.bytes_held_since(epoch); });
  add_offloads(numbers, node);
  add_workers(numbers, node);
  add_principals(numbers, reading);
  return numbers;
}

NodeNumbers numbers_and_samples_of(const Node& node) {
  NodeNumbers numbers = numbers_of(node);
  if (const auto* const peers = node.services().parts.find<offload::NodePeers>()) {
    for (std::size_t i = 0; i < peers->peers.size(); ++i) {
      numbers.peers.push_back({peers->peers[i].name, peers->totals(i)});
    }
  }
  numbers.sampled =
      catalog::samples_of(node.catalog(), {.objects_max = std::numeric_limits<std::size_t>::max()});
  return numbers;
}

}  // namespace espalier::node

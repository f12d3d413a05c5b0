// SPDX-License-Identifier: Apache-2.0
// `bench rings --experiment sleep`: the cost of waking a node's core, and of letting it sleep.
//
// The client spins for its answers in all of them, so that only the node's sleep counts.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/descriptor_limit.hpp"
#include "bench/map_session.hpp"
#include "bench/node_process.hpp"
#include "bench/noop_client.hpp"
#include "bench/own_node.hpp"
#include "bench/point_run.hpp"
#include "bench/probe.hpp"
#include "bench/run_rings.hpp"
#include "channel/rings/ring_connection.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kOpsPerWake = 50;  // a round trip with a wake-up costs about so much more
constexpr std::uint64_t kDozeNs = 50'000;  // from announcing sleep until it sleeps
constexpr double kSettleSeconds = 0.2;     // in which new clients are served, and become idle

struct SleepTrips {
  base::Histogram latencies;
  base::Histogram bells;  // how long the doorbell took
  std::uint64_t checksum = 0;
};

class Sleeper {
 public:
  explicit Sleeper(const node::Node& node) : counts_(node.workers().front()->counts()) {}

  /// Waits until the worker has fallen asleep since the last call.
  void wait_until_asleep() {
    while (counts_.sleeps.load(std::memory_order_relaxed) == sleeps_) base::spin_pause();
    sleeps_ = counts_.sleeps.load(std::memory_order_relaxed);
    const base::Stopwatch watch;
    while (watch.elapsed_ns() < kDozeNs) base::spin_pause();
  }
  [[nodiscard]] std::uint64_t wake_ups() const {
    return counts_.wake_ups.load(std::memory_order_relaxed);
  }

 private:
  const node::WorkerCounts& counts_;
  std::uint64_t sleeps_ = 0;
};

void round_trip(client::ThreadRings& lane, SleepTrips& trips) {
  wire::CallMessage noop;
  noop.offload = wire::OffloadId::noop;
  client::Incoming response;
  const base::Stopwatch trip;
  while (!lane.send(noop, 1)) base::spin_pause();
  lane.ring();
  trips.bells.record(trip.elapsed_ns());
  while (!lane.receive(response)) {
    if (lane.lost()) throw std::runtime_error("the node is gone");
    base::spin_pause();
  }
  trips.latencies.record(trip.elapsed_ns());
  trips.checksum += response.header.tag;
}

PointSample trips_to(const node::Node& node, std::uint64_t ops, bool asleep) {
  SleepTrips trips;
  Sleeper sleeper(node);
  const auto lane = open_lane(local_address(node));
  const base::Stopwatch watch;
  const std::uint64_t wake_ups_before = sleeper.wake_ups();
  for (std::uint64_t i = 0; i < ops; ++i) {
    if (asleep) sleeper.wait_until_asleep();
    round_trip(*lane, trips);
  }
  PointSample sample;
  sample.seconds = static_cast<double>(watch.elapsed_ns()) * 1e-9;
  sample.ops = ops;
  sample.ns_per_op = trips.latencies.mean();
  sample.latencies = trips.latencies;
  sample.checksum = trips.checksum;
  const auto woken = static_cast<double>(sleeper.wake_ups() - wake_ups_before);
  sample.numbers = {{"bell_ns_p50", static_cast<double>(trips.bells.percentile(0.5))},
                    {"wake_ups_per_op", woken / static_cast<double>(ops)}};
  return sample;
}

MeasuredPoint trip_point(std::string workload, std::uint64_t ops, std::uint32_t spin_us) {
  return {.workload = std::move(workload),
          .parameters = {{"spin_us", spin_us}},
          .threads = 2,
          .answers = fmt::format("{} no-ops", ops),
          .measure = [ops, spin_us] {
            node::Config config = spinning_node_config();
            config.node.spin_us = spin_us;
            const auto node = start_own_node(config);
            return pinned([&] { return trips_to(*node, ops, spin_us == 0); })();
          }};
}

// No client sends anything: the processor time that the node's process uses anyway.
PointSample watch_idle_node(std::uint32_t clients, double seconds) {
  node::Config config = own_node_config();
  config.memory.limit = spinning_node_config().memory.limit;
  const NodeProcess node(config);
  base::raise_descriptor_limit();  // each client has one
  std::vector<std::shared_ptr<client::RingConnection>> connections;
  for (std::uint32_t i = 0; i < clients; ++i) {
    connections.push_back(value_or_throw(client::RingConnection::open(config.node.socket),
                                         "cannot connect to the node"));
  }
  node.watch(std::min(seconds, kSettleSeconds));
  const std::uint64_t cpu_before_ns = cpu_ns_of(node.process());
  const base::Stopwatch watch;
  node.watch(seconds);
  const auto elapsed_ns = static_cast<double>(watch.elapsed_ns());
  const auto cpu_ns = static_cast<double>(cpu_ns_of(node.process()) - cpu_before_ns);
  PointSample sample;
  sample.seconds = elapsed_ns * 1e-9;
  sample.numbers = {{"cpu_us_per_s", cpu_ns * 1e6 / elapsed_ns}};
  return sample;
}

MeasuredPoint idle_point(std::uint32_t clients, double seconds) {
  return {.workload = "idle",
          .parameters = {{"connected", clients}, {"seconds", seconds}},
          .answers = "nothing",
          .measure = [=] { return watch_idle_node(clients, seconds); }};
}

}  // namespace

std::vector<MeasuredPoint> sleep_points(const RingsOptions& options) {
  std::vector<MeasuredPoint> points;
  const std::uint64_t ops = std::max<std::uint64_t>(1, options.ops / kOpsPerWake);
  points.push_back(trip_point("spinning", ops, spinning_node_config().node.spin_us));
  points.push_back(trip_point("woken", ops, 0));
  for (const std::uint32_t clients : options.idle) {
    points.push_back(idle_point(clients, options.seconds));
  }
  return points;
}

}  // namespace espalier::bench

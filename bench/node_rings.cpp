// SPDX-License-Identifier: Apache-2.0
// Experiments of `bench rings` with a real node: no-ops through its rings, from one client core.
//
// The node runs in this process, with one worker on the last core; the client has the first.
#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "bench/noop_client.hpp"
#include "bench/own_node.hpp"
#include "bench/point_run.hpp"
#include "bench/probe.hpp"
#include "bench/run_rings.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kRingsWarmUpOps = 2000;

PointSample ask_for_noops(const std::string& address, const NoopPlan& plan) {
  PointSample sample;
  NoopClient client(address, plan);
  static_cast<void>(client.keep_in_flight(kRingsWarmUpOps));
  const bool timed = plan.in_flight == 1 && plan.active == 1;
  const base::Stopwatch watch;
  sample.checksum =
      timed ? client.one_at_a_time(plan.ops, sample.latencies) : client.keep_in_flight(plan.ops);
  sample.took(plan.ops, static_cast<double>(watch.elapsed_ns()) * 1e-9);
  return sample;
}

MeasuredPoint noop_point(std::string workload, const NoopPlan& plan) {
  return {.workload = std::move(workload),
          .parameters = {{"connected", plan.connected},
                         {"active", plan.active},
                         {"in_flight", plan.in_flight},
                         {"payload_bytes", plan.payload_bytes}},
          .threads = 2,
          .answers = fmt::format("{} no-ops", plan.ops),
          .measure = [plan] {
            // The node starts here, since threads of a pinned thread would share its core.
            const auto node = start_own_node(spinning_node_config());
            return pinned([&] { return ask_for_noops(local_address(*node), plan); })();
          }};
}

}  // namespace

std::vector<MeasuredPoint> noop_points(const RingsOptions& options) {
  std::vector<MeasuredPoint> points;
  NoopPlan plan;
  for (const std::uint32_t in_flight : options.in_flight) {
    plan.in_flight = in_flight;
    plan.ops = in_flight == 1 ? options.ops : options.ops * 20;
    points.push_back(noop_point(in_flight == 1 ? "round-trip" : "in-flight", plan));
  }
  plan.in_flight = 32;
  for (const std::uint32_t bytes : options.payload_bytes) {
    plan.payload_bytes = bytes;
    plan.ops = options.ops * 20 / (1 + bytes / 128);
    points.push_back(noop_point("message-size", plan));
  }
  return points;
}

std::vector<MeasuredPoint> connected_points(const RingsOptions& options) {
  std::vector<MeasuredPoint> points;
  NoopPlan plan;
  plan.ops = options.ops * 10;
  for (const std::uint32_t connected : options.rings) {
    plan.connected = connected;
    plan.active = std::min(connected, 16u);
    plan.in_flight = std::max(1u, 32 / plan.active);
    points.push_back(noop_point("connected", plan));
  }
  return points;
}

}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
// `bench rings --experiment connections`, its second half: clients connecting and leaving, and what
// the node's process keeps of them.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor_limit.hpp"
#include "bench/map_session.hpp"
#include "bench/node_process.hpp"
#include "bench/own_node.hpp"
#include "bench/point_run.hpp"
#include "bench/resident.hpp"
#include "bench/run_rings.hpp"
#include "channel/rings/ring_connection.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint32_t kAtOnceMax = 5000;  // a client takes a descriptor here and three mappings
constexpr std::uint64_t kSpareDescriptors = 64;
constexpr double kLookSeconds = 0.001;
constexpr double kRestSeconds = 0.5;  // for memory to go back to the system after that
constexpr int kLooksMax = 10'000;     // for the node to detect that its clients left

/// The resources of a node's process.
struct Holds {
  std::uint64_t resident_bytes = 0;
  std::uint64_t descriptors = 0;

  static Holds of(const NodeProcess& node) {
    return {resident(node.process()).bytes, descriptors_of(node.process())};
  }
};

// Returns whether all descriptors were closed.
bool wait_until_forgotten(const NodeProcess& node, std::uint64_t descriptors) {
  for (int look = 0; look < kLooksMax; ++look) {
    if (descriptors_of(node.process()) <= descriptors) return true;
    node.watch(kLookSeconds);
  }
  return false;
}

// Connects so many clients and disconnects them. Returns the time; `look` is called in between,
// outside the clock.
template <class Look>
std::uint64_t come_and_go_ns(const std::string& socket, std::uint64_t clients, Look look) {
  std::vector<std::shared_ptr<client::RingConnection>> connections;
  const base::Stopwatch coming;
  for (std::uint64_t i = 0; i < clients; ++i) {
    connections.push_back(
        value_or_throw(client::RingConnection::open(socket), "cannot connect to the node"));
  }
  const std::uint64_t coming_ns = coming.elapsed_ns();
  look();
  const base::Stopwatch going;
  connections.clear();
  return coming_ns + going.elapsed_ns();
}

PointSample open_and_close(std::uint64_t opened, std::uint64_t at_once) {
  const node::Config config = spinning_node_config();
  const NodeProcess node(config);
  const Holds fresh = Holds::of(node);
  // The first client needs tables that stay for later ones.
  come_and_go_ns(config.node.socket, 1, [] {});
  PointSample sample;
  sample.complete = wait_until_forgotten(node, fresh.descriptors);
  const Holds before = Holds::of(node);
  Holds most = before;
  std::uint64_t spent_ns = 0;
  for (std::uint64_t left = opened; left != 0;) {
    const std::uint64_t now = std::min(left, at_once);
    spent_ns += come_and_go_ns(config.node.socket, now, [&] {
      if (left == opened) most = Holds::of(node);  // never will there be more
    });
    left -= now;
    // Otherwise the node might still have these when others connect, and refuse them.
    if (now > 1 && !wait_until_forgotten(node, before.descriptors)) sample.complete = false;
  }
  sample.took(opened, static_cast<double>(spent_ns) * 1e-9);
  sample.complete = wait_until_forgotten(node, before.descriptors) && sample.complete;
  node.watch(kRestSeconds);
  const Holds after = Holds::of(node);
  sample.checksum = opened;
  const auto add = [&sample](const char* key, std::uint64_t value) {
    sample.numbers.emplace_back(key, static_cast<double>(value));
  };
  add("descriptors_before", before.descriptors);
  add("descriptors_most", most.descriptors);
  add("descriptors_after", after.descriptors);
  add("resident_bytes_before", before.resident_bytes);
  add("resident_bytes_most", most.resident_bytes);
  add("resident_bytes_after", after.resident_bytes);
  return sample;
}

MeasuredPoint open_close_point(std::uint64_t opened, std::uint64_t at_once) {
  return {.workload = "open-close",
          .parameters = {{"opened", opened}, {"at_once", at_once}},
          .answers = fmt::format("{} connections", opened),
          .measure = [=] { return open_and_close(opened, at_once); }};
}

}  // namespace

std::vector<MeasuredPoint> open_close_points(const RingsOptions& options) {
  const std::uint64_t descriptors = base::raise_descriptor_limit();
  const std::uint64_t room =
      descriptors > 2 * kSpareDescriptors ? descriptors - kSpareDescriptors : kSpareDescriptors;
  std::vector<MeasuredPoint> points{open_close_point(options.opened, 1)};
  const std::uint64_t at_once =
      std::min({options.opened, room, static_cast<std::uint64_t>(kAtOnceMax)});
  if (at_once > 1) points.push_back(open_close_point(options.opened, at_once));
  return points;
}

}  // namespace espalier::bench

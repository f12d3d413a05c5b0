// SPDX-License-Identifier: Apache-2.0
// The experiment `peer` of `bench rpc`: GET and SET of a node beside those of Redis, with the same
// in flight on both sides.
//
// One client thread with one connection, one thread that serves, both through a UNIX socket's way:
// the node by rings in shared memory, Redis by a pipeline over its socket (hiredis) that holds as
// many requests as the rings do. The same uniform requests on the same pairs, loaded before; one
// target runs after the other, so that neither has the other's company.
#include <fmt/core.h>

#include <array>
#include <memory>

#include "bench/key_cache.hpp"
#include "bench/run_rpc.hpp"
#include "bench/ycsb_options.hpp"

namespace espalier::bench {
namespace {

constexpr std::array<TargetKind, 2> kPeers{TargetKind::node, TargetKind::redis};
constexpr std::array<std::uint32_t, 2> kPeerInFlight{1, 32};

YcsbOptions peer_options(const RpcOptions& options, TargetKind target, bool sets,
                         std::uint32_t in_flight) {
  YcsbOptions result;
  result.targets = {target};
  result.workload = Workload::mixed;
  result.shares.writes = sets ? 1 : 0;
  result.keys = options.keys.front();
  if (result.keys == kKeysThatFit) result.keys = keys_that_fit(options, options.fit_bytes);
  result.key_bytes = options.key_bytes;
  result.value_bytes = options.value_bytes;
  result.in_flight = in_flight;
  result.ops = options.ops;
  result.seed = options.seed;
  result.seconds = options.seconds;
  result.probe_rounds = 0;  // each point is probed already
  return result;
}

}  // namespace

std::vector<MeasuredPoint> peer_points(const RpcOptions& options, Progress& progress) {
  std::vector<MeasuredPoint> points;
  const auto cache = std::make_shared<KeyCache>();
  for (const std::uint32_t in_flight : kPeerInFlight) {
    for (const bool sets : {false, true}) {
      for (const TargetKind target : kPeers) {
        const YcsbOptions ycsb = peer_options(options, target, sets, in_flight);
        const char* const workload = sets ? "set" : "get";
        points.push_back(
            {.target = std::string(name(target)),
             .workload = workload,
             .parameters = {{"in_flight", in_flight}, {"keys", ycsb.keys}},
             .threads = 2,
             .answers = fmt::format("{} with {} in flight", workload, in_flight),
             .measure = [ycsb, cache, &progress] { return measure_map(ycsb, *cache, progress); }});
      }
    }
  }
  return points;
}

}  // namespace espalier::bench

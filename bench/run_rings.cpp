// SPDX-License-Identifier: Apache-2.0
#include "bench/run_rings.hpp"

#include <iterator>

#include "bench/benchmark.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint32_t kRingsMax = 16384;  // 256 MiB of lines

}  // namespace

void RingsOptions::declare(OptionRows& rows) {
  rows.numbers("--in-flight", in_flight, {1, 256}, "no-ops, or chases");
  rows.numbers("--payload-bytes", payload_bytes, {0, 8192}, "of no-ops");
  rows.numbers("--rings", rings, {1, kRingsMax}, "how many (doorbell, connections)");
  rows.number("--opened", opened, {1, 10'000'000}, "connections opened and closed (connections)");
  rows.numbers("--idle", idle, {0, 10'000}, "connections that ask nothing (sleep)");
  rows.number("--seconds", seconds, {0, 3600}, "how long an idle node is watched (sleep)");
  rows.number("--list-nodes", list_nodes, {2, std::uint64_t{1} << 32},
              "length of the list, 64 bytes each (chase)");
  rows.number("--ops", ops, {64, 1U << 27},
              "round trips of a measurement; what is cheaper, more often");
  rows.of_points(*this);
}

std::vector<ExperimentRow> RingsOptions::experiment_rows() const {
  const auto of = [this](std::vector<MeasuredPoint> (*points)(const RingsOptions&)) {
    return [this, points](Report&) { return points(*this); };
  };
  const auto connections = [this](Report&) {
    std::vector<MeasuredPoint> points = connected_points(*this);
    std::ranges::move(open_close_points(*this), std::back_inserter(points));
    return points;
  };
  return {{"doorbell", of(doorbell_points)},
          {"noop", of(noop_points)},
          {"connections", connections},
          {"sleep", of(sleep_points)},
          {"chase", of(chase_points)}};
}

}  // namespace espalier::bench

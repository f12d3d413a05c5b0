// SPDX-License-Identifier: Apache-2.0
// `espalier-bench rings`: parameters of requests through rings in shared memory.
//
// An experiment is a list of points (bench/point_run.hpp). A new one is a function that makes
// points, and a row in run_rings.cpp.
//
//   doorbell   polling for rings with new requests (bench/doorbell_points.cpp)
//     empty-scan      while there are none: at the node's doorbells, and at each ring's next line
//   noop         no-ops through the rings of a node (bench/node_rings.cpp)
//     round-trip      one at a time
//     in-flight       by how many are in flight
//     message-size    by the length of requests
//   connections  many clients (bench/node_rings.cpp, bench/connection_points.cpp)
//     connected       no-ops, by how many are connected, of which 16 send
//     open-close      clients connecting and leaving, and what the node's process keeps of them
//   sleep        a node whose core sleeps (bench/sleep_points.cpp)
//     spinning        a round trip to a core that spins, and
//     woken           to one that sleeps
//     idle            the processor time that a node takes for idle clients
//   chase        following a list in the node's memory (bench/chase_points.cpp) [RAMBDA §VI-A]
//     offload         one request, the node follows
//     hop-by-hop      one request for each node of the list, the client follows
//                     and the first by 16 connections, whose rings the node polls, or by doorbells
#pragma once

#include <cstdint>
#include <vector>

#include "bench/point_options.hpp"

namespace espalier::bench {

struct MeasuredPoint;

struct RingsOptions : PointOptions {
  static constexpr const char* kBench = "rings";
  static constexpr const char* kSummary = "how requests could travel in shared memory";

  std::vector<std::uint32_t> rings{16, 1024};                         ///< doorbell, connections
  std::vector<std::uint32_t> in_flight{1, 8, 16, 32, 64, 128, 256};   ///< noop, chase
  std::vector<std::uint32_t> payload_bytes{32, 88, 256, 1024, 4096};  ///< noop, 32 in flight
  std::uint64_t ops = 200'000;    ///< round trips of a measurement; more of cheaper ones
  std::uint64_t opened = 10'000;  ///< connections: clients that come and go
  std::vector<std::uint32_t> idle{0, 16, 1000};  ///< sleep: idle clients
  double seconds = 5;                            ///< sleep: how long they are watched
  std::uint64_t list_nodes = 10'000'000;         ///< chase
  std::uint32_t chases = 16;  ///< chase: on each of 16 connections, where there are so many

  void declare(OptionRows& rows);
  [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
};

/// The points of --experiment doorbell.
std::vector<MeasuredPoint> doorbell_points(const RingsOptions& options);

/// The points of --experiment noop, and those of connections.
std::vector<MeasuredPoint> noop_points(const RingsOptions& options);
std::vector<MeasuredPoint> connected_points(const RingsOptions& options);
std::vector<MeasuredPoint> open_close_points(const RingsOptions& options);

/// The points of --experiment sleep and chase.
std::vector<MeasuredPoint> sleep_points(const RingsOptions& options);
std::vector<MeasuredPoint> chase_points(const RingsOptions& options);

}  // namespace espalier::bench

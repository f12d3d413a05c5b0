// SPDX-License-Identifier: Apache-2.0
// `espalier-bench place`: a map over two nodes, by the share of keys on the second one, read only
// and half of it written [DPU §4]. The nodes run in this process, each with cores of its own if
// there are enough; a pipeline uses both, with so many requests in flight on each. Beside the
// measured rate stands a model's: turn_costs.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/point_options.hpp"

namespace espalier::bench {

struct PlaceOptions : PointOptions {
  static constexpr const char* kBench = "place";
  static constexpr const char* kSummary =
      "a map over two nodes, by the share of keys of the second";
  PlaceOptions() { repeats = 1; }  // rounds over all points of a share

  std::vector<std::uint64_t> shares{0, 25, 50, 75, 100};  ///< of keys on the second node, percent
  std::vector<std::uint64_t> reads{100, 50};              ///< of all requests, in percent
  std::uint64_t keys = 1'000'000;
  std::uint64_t value_bytes = 16;
  std::uint64_t ops = 1'000'000;
  std::uint32_t threads = 1;
  std::uint32_t in_flight = 16;
  std::uint32_t node_cores = 1;  ///< of each node
  /// Slowness of the second node's cores, which stand for weaker ones: node::WorkerCore. READs of
  /// its memory are not affected.
  double slowness = 1;
  bool one_sided = false;  ///< reads by READs of either node's memory, over shm
  std::uint64_t node_bytes = 8192;
  /// Cache of a pipeline of one_sided; it is filled before the clock runs.
  std::uint64_t cache_bytes = std::uint64_t{32} << 20;

  void declare(OptionRows& rows);
  [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
};

}  // namespace espalier::bench

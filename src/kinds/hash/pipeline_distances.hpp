// SPDX-License-Identifier: Apache-2.0
// Prefetch distances of a pipeline: how many requests before its turn a request's lines are
// prefetched.
//
// With many prefetches in flight a line takes a few times the idle latency of memory, and about 25
// ns pass from one turn to the next. So a line that is prefetched four latencies before its turn
// arrives in time: 20 requests before at 125 ns. A bin is prefetched as long before its record.
// Longer distances only evict lines again.
//
// Thread: safe, no state but what was measured.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/line_latency.hpp"

namespace espalier::hash {

/// Requests ahead of the one whose turn it is: near <= record <= bin.
struct PipelineDistances {
  std::uint32_t bin = 40;
  std::uint32_t record = 20;
  std::uint32_t near = 4;

  /// For a memory of this latency: at least the delay of other caches and queues on the path, at
  /// most what the first and second level hold.
  [[nodiscard]] static PipelineDistances of_latency(std::uint64_t ns) {
    constexpr std::uint64_t kNsOfATurn = 25;
    const auto record =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(4 * ns / kNsOfATurn, 12, 48));
    return {2 * record, record, record / 5};
  }
  /// Those of this machine. Cost: none once a store has been made, for which the latency is
  /// measured (base/line_latency.hpp); before, the first time, that.
  [[nodiscard]] static const PipelineDistances& of_machine() {
    static const PipelineDistances distances = of_latency(base::line_latency_of_machine_ns());
    return distances;
  }
  /// The same in proportion, if fewer requests are in flight. Requires: bin is not 0.
  [[nodiscard]] PipelineDistances within(std::uint32_t in_flight) const {
    const std::uint32_t most = std::clamp(in_flight, 1u, bin + 1) - 1;
    return {most, most * record / bin, most * near / bin};
  }
};

}  // namespace espalier::hash

// SPDX-License-Identifier: Apache-2.0
// How far ahead of its turn a request's lines are asked for.
//
// A line is on its way for a few times the latency of an idle memory where many are asked for, and
// about 25 ns pass from one request's turn to the next. So what is asked for four latencies before
// its turn is there in time: 20 requests before at 125 ns. A bin is asked for as long before its
// record. More only puts lines out of the cache again.
//
// Thread: safe, no state but what was measured.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/line_latency.hpp"

namespace espalier::hash {

/// How many requests ahead of the one whose turn it is: near <= record <= bin.
struct PipelineDistances {
  std::uint32_t bin = 40;
  std::uint32_t record = 20;
  std::uint32_t near = 4;

  /// Those of a memory that answers after so long: at least what other caches and queues on the way
  /// take, at most what a first and second level hold.
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
  /// The same in proportion, where fewer requests are in flight. Requires: bin is not 0.
  [[nodiscard]] PipelineDistances within(std::uint32_t in_flight) const {
    const std::uint32_t most = std::clamp(in_flight, 1u, bin + 1) - 1;
    return {most, most * record / bin, most * near / bin};
  }
};

}  // namespace espalier::hash

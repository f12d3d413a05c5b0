// SPDX-License-Identifier: Apache-2.0
// Prefetch distances of a gather: how many rows before its turn a row's lines are prefetched.
//
// A gather keeps memory saturated, so that a line takes many times the idle latency, while some 20
// ns pass from one row to the next. Much longer distances evict lines again; within the limit
// distances matter little (docs/benchmarks.md).
//
// Thread: safe, no state but what was measured.
#pragma once

#include <algorithm>
#include <cstdint>

namespace espalier::embedding {

struct GatherDistances {
  static constexpr std::uint32_t kLaterRowsMax = 128;

  std::uint32_t later = 64;  // rows ahead that are prefetched into the second-level cache
  std::uint32_t soon = 8;    // and into the first

  /// For a memory of this latency.
  [[nodiscard]] static GatherDistances of_latency(std::uint64_t ns) {
    constexpr std::uint64_t kBusyLatencies = 16;
    constexpr std::uint64_t kNsOfARow = 20;
    const auto later = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(kBusyLatencies * ns / kNsOfARow, 48, kLaterRowsMax));
    return {later, later / 8};
  }
  /// Those of this machine. Cost: none once a store has been made, for which the latency is
  /// measured (base/line_latency.hpp); before, the first time, that.
  [[nodiscard]] static const GatherDistances& of_machine();
};

}  // namespace espalier::embedding

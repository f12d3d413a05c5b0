// SPDX-License-Identifier: Apache-2.0
// The cost of one clock for all maps of a store: YCSB-A in this process, each thread on an ordered
// map of its own.
#pragma once

#include <cstdint>

#include "bench/point_run.hpp"

namespace espalier::bench {

struct ClockSetting {
  bool shared = false;
  std::uint64_t keys = 1'000'000;  ///< of each map
  std::uint32_t threads = 2;
  std::uint64_t ops = 0;  ///< of all threads
  std::uint64_t seed = 1;
};

/// Errors: throws std::runtime_error.
[[nodiscard]] PointSample measure_clock(const ClockSetting& setting);

}  // namespace espalier::bench

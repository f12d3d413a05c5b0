// SPDX-License-Identifier: Apache-2.0
// One measurement of chains that one thread polls (chain_line.hpp).
#pragma once

#include <cstdint>

#include "bench/chain_line.hpp"
#include "bench/point_run.hpp"

namespace espalier::bench {

struct LinePoint {
  LineWay way = LineWay::one_request;
  LineSetting setting;
  std::uint32_t reads = 0;
  std::uint32_t writes = 1;
  std::uint64_t ops = 0;
  std::uint64_t seed = 1;
};

/// Transactions one at a time; the checksum is of their reads, and of all pairs at the end. Errors:
/// throws std::runtime_error.
[[nodiscard]] PointSample measure_line(const LinePoint& point);

}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
// The rate at which one core reads random cache lines, each prefetched: the bound of a hash table
// with requests in flight.
#pragma once

#include <cstddef>
#include <cstdint>

namespace espalier::bench {

struct RandomLineRate {
  double lines_per_s = 0;
  std::uint32_t distance = 0;  ///< the best prefetch distance, in lines
  bool to_l2 = false;          ///< prefetches went to the second-level cache
  std::uint64_t checksum = 0;
};

/// The best of several distances and both hints, each measured for so long. The block has huge
/// pages. Requires: bytes >= 64. Cost: memory of so many bytes, and a pass over it.
[[nodiscard]] RandomLineRate random_line_rate(std::size_t bytes, double seconds,
                                              std::uint64_t seed);

}  // namespace espalier::bench

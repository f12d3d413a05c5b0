// SPDX-License-Identifier: Apache-2.0
// Costs of reading remote memory.
#pragma once

#include <cstdint>

namespace espalier::tree {

/// Statistics of remote reads: round trips and bytes.
struct WalkTraffic {
  std::uint64_t round_trips = 0;
  std::uint64_t bytes = 0;     // those of `asides` too
  std::uint64_t asides = 0;    // round trips that no walk waited for: mapping feeds
  std::uint64_t by_rings = 0;  // one-sided reads that fell back to requests
  std::uint64_t reads = 0;     // READs; a round trip may cover several

  WalkTraffic& operator+=(const WalkTraffic& other) {
    round_trips += other.round_trips;
    bytes += other.bytes;
    asides += other.asides;
    by_rings += other.by_rings;
    reads += other.reads;
    return *this;
  }
};

}  // namespace espalier::tree

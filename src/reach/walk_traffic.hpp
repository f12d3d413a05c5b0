// SPDX-License-Identifier: Apache-2.0
// What reading memory elsewhere takes.
#pragma once

#include <cstdint>

namespace espalier::tree {

/// What reading memory elsewhere took: waits for bytes, and the bytes.
struct WalkTraffic {
  std::uint64_t round_trips = 0;
  std::uint64_t bytes = 0;     // those of `asides` too
  std::uint64_t asides = 0;    // round trips for which no walk waited: those of mapping feeds
  std::uint64_t by_rings = 0;  // reads that a client was to do alone, and asked the node for
  std::uint64_t reads = 0;     // READs, of which one round trip waits for several

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

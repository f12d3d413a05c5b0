// SPDX-License-Identifier: Apache-2.0
// Runs one verb through one queue pair, with the given number in flight.
//
// Thread: one, that of the client's endpoint.
#pragma once

#include <cstdint>

#include "bench/fabric_ends.hpp"
#include "bench/point_run.hpp"

namespace espalier::bench {

struct FabricLoop {
  fabric::Opcode opcode = fabric::Opcode::read;
  std::uint32_t bytes = 64;
  std::uint32_t in_flight = 32;
  std::uint32_t batch = 1;         ///< posted with one doorbell
  std::uint32_t signal_every = 1;  ///< the next signalled one covers the others
  bool inlined = false;
  std::uint64_t ops = 0;
  std::uint64_t seed = 1;
};

/// Runs it against the server's region, each operation at a random multiple of its size, rounded to
/// lines. With one in flight every operation is timed. The checksum is over the results of READs
/// and atomics. Errors: throws std::runtime_error if the pair fails.
PointSample run_loop(FabricServer& server, const FabricLoop& loop);

/// The same READs by memcpy from the server's memory, mapped in this process.
PointSample run_memcpy(const FabricServer& server, const FabricLoop& loop);

}  // namespace espalier::bench

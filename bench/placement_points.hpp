// SPDX-License-Identifier: Apache-2.0
// Records that a peer WRITEs into registered memory, by kind of memory and policy [RAMBDA Fig. 5]:
// one measurement of `espalier-bench log --experiment placement`.
#pragma once

#include <cstdint>

#include "bench/point_run.hpp"
#include "fabric/placement.hpp"

namespace espalier::bench {

struct PlacementSetting {
  fabric::MemoryKind kind = fabric::MemoryKind::persistent;
  fabric::PlacementPolicy policy = fabric::PlacementPolicy::adaptive;
  bool sequential = false;          ///< false: each record goes to a random place
  std::uint32_t record_bytes = 64;  ///< a power of two
  std::uint64_t region_bytes = 0;   ///< a multiple of the record's
  std::uint64_t cache_bytes = 0;    ///< of the modelled cache
  std::uint64_t ops = 0;
  std::uint64_t seed = 1;
};

/// The arrival rate in the model, as in the paper's figure.
inline constexpr double kModelledArrivalGb = 3.5;

[[nodiscard]] std::string_view name(fabric::MemoryKind kind);

/// WRITEs over `shm`, one at a time. The counts of the fabric and of the model
/// (placement_model.hpp) are of the same WRITEs, once the modelled cache is full; latencies are
/// measured, of stores to this machine's memory. The checksum is of the final memory. Errors:
/// throws std::runtime_error.
[[nodiscard]] PointSample measure_placement(const PlacementSetting& setting);

}  // namespace espalier::bench

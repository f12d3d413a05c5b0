// SPDX-License-Identifier: Apache-2.0
// Two threads that add to one word, each on a core of its own: by plain instructions, or by
// FETCH_ADDs over `shm`, each checked and completed. The holder of the word's cache line determines
// the rate of either, so they are compared with both threads contending for it.
//
// Thread: any; the two are its own.
#pragma once

#include <cstdint>

#include "bench/fabric_ends.hpp"
#include "bench/point_run.hpp"

namespace espalier::bench {

/// Each thread does so many adds. The checksum is over the values that they found: these are all
/// different, so it depends on their number alone. Errors: throws std::runtime_error.
PointSample add_locally(FabricServer& server, std::uint64_t ops_per_thread);
/// `batch`: posted with one doorbell.
PointSample add_over_fabric(FabricServer& server, std::uint64_t ops_per_thread,
                            std::uint32_t batch);

}  // namespace espalier::bench

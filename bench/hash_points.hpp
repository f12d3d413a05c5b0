// SPDX-License-Identifier: Apache-2.0
// Points of `espalier-bench hash` without a peer: the cost of a map's growth, and of the posts of
// answers that are sent by WRITE.
//
// Thread: any; each point runs on one.
#pragma once

#include <vector>

#include "bench/point_run.hpp"
#include "bench/run_hash.hpp"

namespace espalier::bench {

/// Consecutive puts into an empty map of this process: memory for a pair, on average and at worst
/// from a 64th of the pairs on, and the longest put by its thread's own clock, which excludes
/// preemption.
[[nodiscard]] std::vector<MeasuredPoint> growth_points(const HashBenchOptions& options);

/// Answers of 64 bytes, written into memory of a peer of this machine (shm), 64 of them by one
/// doorbell: doorbells and completions per answer, and the time per answer, if each k-th is
/// signalled, k = 1 to 64 [RAMBDA §III-C].
[[nodiscard]] std::vector<MeasuredPoint> signal_points(const HashBenchOptions& options);

}  // namespace espalier::bench

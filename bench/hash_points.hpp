// SPDX-License-Identifier: Apache-2.0
// Points of `espalier-bench hash` that ask no peer: what a map costs while it grows, and what the
// posts of answers cost that go by WRITE.
//
// Thread: any; each point runs on one.
#pragma once

#include <vector>

#include "bench/point_run.hpp"
#include "bench/run_hash.hpp"

namespace espalier::bench {

/// One put after the other into an empty map of this process: memory for a pair, on average and at
/// worst from a 64th of the pairs on, and the longest put by its thread's own clock, so that what
/// other threads take of the core is none of it.
[[nodiscard]] std::vector<MeasuredPoint> growth_points(const HashBenchOptions& options);

/// Answers of 64 bytes, written into memory of a peer of this machine (shm), 64 of them by one
/// doorbell: how many doorbells and completions there are for each, and what an answer takes, where
/// each k-th is signalled, k = 1 to 64 [RAMBDA §III-C].
[[nodiscard]] std::vector<MeasuredPoint> signal_points(const HashBenchOptions& options);

}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
// How many cache lines a get and a put of a hash map touch, the unit in which RAMBDA counts them
// (three and four): recorded at reads, and detected after writes.
//
// Thread: any; each point runs on one.
#pragma once

#include <vector>

#include "bench/point_run.hpp"
#include "bench/run_hash.hpp"

namespace espalier::bench {

/// Gets and puts of uniform pairs that are there, one by one, in a map whose segments are as full
/// as those of a large one: lines of bins and records (`lines`), of what these are made of, and
/// those among all of them that a cache of 256 KiB does not have (`far_lines`).
/// Cost: 20 000 pairs, and a look at all of their memory for each put, of which there are 8000.
[[nodiscard]] std::vector<MeasuredPoint> line_points(const HashBenchOptions& options);

}  // namespace espalier::bench

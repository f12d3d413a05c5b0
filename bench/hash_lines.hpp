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

/// Gets and puts of uniform existing pairs, one by one, in a map whose segments are as full as
/// those of a large one: lines of bins and records (`lines`), their parts, and those of all that
/// miss a cache of 256 KiB (`far_lines`). Cost: 20 000 pairs, and a scan of all their memory for
/// each of the 8000 puts.
[[nodiscard]] std::vector<MeasuredPoint> line_points(const HashBenchOptions& options);

}  // namespace espalier::bench

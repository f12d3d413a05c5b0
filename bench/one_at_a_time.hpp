// SPDX-License-Identifier: Apache-2.0
// Latencies of requests that are sent one at a time.
#pragma once

#include <span>

#include "base/clock.hpp"
#include "base/histogram.hpp"
#include "espalier/map.hpp"

namespace espalier::bench {

/// Nanoseconds of each request, from before its submission until the pipeline has passed its answer
/// to the handler. Cost: the time of each, on this thread.
[[nodiscard]] inline base::Histogram one_at_a_time(Pipeline& pipeline,
                                                   std::span<const Request> requests,
                                                   Handler& handler) {
  base::Histogram latencies;
  for (; !requests.empty(); requests = requests.subspan(1)) {
    const base::Stopwatch watch;
    pipeline.run(requests.first(1), handler);
    latencies.record(watch.elapsed_ns());
  }
  return latencies;
}

}  // namespace espalier::bench

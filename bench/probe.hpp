// SPDX-License-Identifier: Apache-2.0
// The cores of a benchmark, and the latency between them while it runs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace espalier::bench {

/// Pins the calling thread, the `index`-th of a benchmark, to a core of its own while there are
/// enough; further ones share. If the system refuses, the thread is not pinned.
void pin_worker(std::uint32_t index);

/// The same, counted from the last core, for threads that work beside a benchmark.
void pin_beside(std::uint32_t index);

/// Runs `work` on a pinned thread of its own and waits for it. Errors: rethrows what it threw.
void run_pinned(const std::function<void()>& work);

/// Median round trip of a cache line between the first two cores, or nothing if there is only one
/// or `rounds` is 0. Cost: at most a tenth of a second, unless other work disturbs it.
std::optional<double> probe_ns(std::uint32_t rounds);

}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
#include "bench/together.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <exception>
#include <limits>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "bench/probe.hpp"

namespace espalier::bench {

double run_together(std::uint32_t threads, const std::function<void(std::uint32_t)>& prepare,
                    const std::function<void(std::uint32_t)>& work) {
  struct Outcome {
    std::uint64_t start_ns = 0;
    std::uint64_t end_ns = 0;
    std::exception_ptr error;
  };
  std::vector<Outcome> outcomes(threads);
  std::barrier<> ready(static_cast<std::ptrdiff_t>(threads));
  std::atomic<bool> failed{false};
  const auto run = [&](std::uint32_t i) {
    const auto guarded = [&](const std::function<void(std::uint32_t)>& step) {
      try {
        step(i);
      } catch (...) {
        outcomes[i].error = std::current_exception();
        failed = true;
      }
    };
    pin_worker(i);
    guarded(prepare);
    ready.arrive_and_wait();
    if (failed) return;
    outcomes[i].start_ns = base::monotonic_ns();
    guarded(work);
    outcomes[i].end_ns = base::monotonic_ns();
  };
  {
    std::vector<std::jthread> started;
    for (std::uint32_t i = 0; i < threads; ++i) started.emplace_back(run, i);
  }
  std::uint64_t start_ns = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t end_ns = 0;
  for (const Outcome& outcome : outcomes) {
    if (outcome.error) std::rethrow_exception(outcome.error);
    start_ns = std::min(start_ns, outcome.start_ns);
    end_ns = std::max(end_ns, outcome.end_ns);
  }
  return static_cast<double>(end_ns - start_ns) * 1e-9;
}

}  // namespace espalier::bench

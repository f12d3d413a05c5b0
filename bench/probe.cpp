// SPDX-License-Identifier: Apache-2.0
#include "bench/probe.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/cpu.hpp"

namespace espalier::bench {
namespace {

// If other work wants the same cores, a round trip takes as long as the scheduler lets it, and a
// probe of fixed length would take minutes; so it is cut into short rounds and has a limit.
constexpr unsigned kRoundTrips = 500;
constexpr std::uint64_t kProbeNsMax = 100'000'000;

// Read once, before any thread is pinned: a pinned thread sees its own core only.
const std::vector<unsigned>& cores() {
  static const std::vector<unsigned> result = base::usable_cores();
  return result;
}

}  // namespace

void pin_worker(std::uint32_t index) {
  if (cores().empty()) return;
  // A refusal is no failure: the numbers are only noisier.
  [[maybe_unused]] const auto pinned = base::pin_this_thread(cores()[index % cores().size()]);
}

void pin_beside(std::uint32_t index) {
  if (cores().empty()) return;
  const auto count = static_cast<std::uint32_t>(cores().size());
  pin_worker(count - 1 - index % count);
}

void run_pinned(const std::function<void()>& work) {
  std::exception_ptr error;
  std::jthread([&] {
    pin_worker(0);
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
}

std::optional<double> probe_ns(std::uint32_t rounds) {
  if (rounds == 0 || cores().size() < 2) return std::nullopt;
  std::vector<double> medians;
  const base::Stopwatch watch;
  while (medians.size() < rounds && (medians.empty() || watch.elapsed_ns() < kProbeNsMax)) {
    const auto measured = base::measure_ping_pong(cores()[0], cores()[1], 1, kRoundTrips);
    if (!measured) return std::nullopt;
    medians.push_back(measured->median_ns);
  }
  const auto middle = medians.begin() + static_cast<std::ptrdiff_t>(medians.size() / 2);
  std::ranges::nth_element(medians, middle);
  return *middle;
}

}  // namespace espalier::bench

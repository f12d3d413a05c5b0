// SPDX-License-Identifier: Apache-2.0
#include "bench/probe.hpp"

#include <exception>
#include <thread>
#include <vector>

#include "base/cpu.hpp"

namespace espalier::bench {
namespace {

// Asked once, before any thread is pinned: a pinned thread sees its own core only.
const std::vector<unsigned>& cores() {
  static const std::vector<unsigned> result = base::usable_cores();
  return result;
}

}  // namespace

void pin_worker(std::uint32_t index) {
  if (cores().empty()) return;
  // Refusal is no failure: the numbers are only noisier.
  [[maybe_unused]] const auto pinned = base::pin_this_thread(cores()[index % cores().size()]);
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
  const auto measured = base::measure_ping_pong(cores()[0], cores()[1], rounds);
  if (!measured) return std::nullopt;
  return measured->median_ns;
}

}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
// The two clocks of the system, in nanoseconds. Both are monotonic; neither is the date.
//
// `monotonic_ns` measures durations. `boot_ns` also counts while the machine is suspended, as a
// lease needs: after a suspend its reader must find that the lease has expired.
// The counter of the CPU is not used: it may differ between sockets and stop in virtual machines,
// and the kernel's clocks cost about the same. Thread: safe.
#pragma once

#include <time.h>

#include <cstdint>

#include "base/assert.hpp"

namespace espalier::base {

namespace detail {
[[nodiscard]] inline std::uint64_t clock_ns(clockid_t clock) noexcept {
  timespec now{};
  const int failed = ::clock_gettime(clock, &now);
  ESPALIER_ASSERT(failed == 0);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}
}  // namespace detail

/// Nanoseconds since some start; stands still while the machine sleeps. Cost: about 25 ns, no call
/// into the kernel.
[[nodiscard]] inline std::uint64_t monotonic_ns() noexcept {
  return detail::clock_ns(CLOCK_MONOTONIC);
}

/// Nanoseconds since the machine was started, sleep included. The same for all processes of a
/// machine. Cost: as monotonic_ns.
[[nodiscard]] inline std::uint64_t boot_ns() noexcept { return detail::clock_ns(CLOCK_BOOTTIME); }

/// Measures from its construction, or from the last restart.
class Stopwatch {
 public:
  Stopwatch() noexcept : start_ns_(monotonic_ns()) {}
  [[nodiscard]] std::uint64_t elapsed_ns() const noexcept { return monotonic_ns() - start_ns_; }
  void restart() noexcept { start_ns_ = monotonic_ns(); }

 private:
  std::uint64_t start_ns_;
};

}  // namespace espalier::base

// SPDX-License-Identifier: Apache-2.0
// The monotonic clock as of the last tick of the kernel, for frequent reads that need no more than
// some milliseconds of resolution. Thread: safe.
#pragma once

#include <time.h>

#include <cstdint>

#include "base/assert.hpp"
#include "base/clock.hpp"

namespace espalier::base {

/// As monotonic_ns(), or up to ten milliseconds less. Cost: about 5 ns.
[[nodiscard]] inline std::uint64_t coarse_ns() noexcept {
  return detail::clock_ns(CLOCK_MONOTONIC_COARSE);
}

/// How long a tick is: coarse_ns() may be so much less than monotonic_ns().
[[nodiscard]] inline std::uint64_t coarse_tick_ns() noexcept {
  timespec tick{};
  const int failed = ::clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
  ESPALIER_ASSERT(failed == 0);
  return static_cast<std::uint64_t>(tick.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(tick.tv_nsec);
}

}  // namespace espalier::base

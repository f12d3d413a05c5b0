// SPDX-License-Identifier: Apache-2.0
// The clock of what a thread has had of a processor, in nanoseconds: it stands still while the
// thread waits, and while others run in its place. Thread: safe; each has its own.
#pragma once

#include <time.h>

#include <cstdint>

#include "base/clock.hpp"

namespace espalier::base {

/// Processor time that the calling thread has had. Cost: a call into the kernel, some 100 ns.
[[nodiscard]] inline std::uint64_t thread_cpu_ns() noexcept {
  return detail::clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

}  // namespace espalier::base

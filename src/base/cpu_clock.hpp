// SPDX-License-Identifier: Apache-2.0
// CPU time of a thread, in nanoseconds: it stands still while the thread waits or is preempted.
// Thread: safe; each has its own.
#pragma once

#include <time.h>

#include <cstdint>

#include "base/clock.hpp"

namespace espalier::base {

/// CPU time of the calling thread. Cost: a system call, some 100 ns.
[[nodiscard]] inline std::uint64_t thread_cpu_ns() noexcept {
  return detail::clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

}  // namespace espalier::base

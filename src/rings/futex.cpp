// SPDX-License-Identifier: Apache-2.0
#include "rings/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace espalier::rings {

void futex_wait(const std::byte* at, std::uint32_t value, std::uint64_t timeout_ns) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const timespec timeout{static_cast<time_t>(timeout_ns / kSecond),
                         static_cast<long>(timeout_ns % kSecond)};
  ::syscall(SYS_futex, at, FUTEX_WAIT, value, &timeout, nullptr, 0);
}

void futex_wake(const std::byte* at) {
  ::syscall(SYS_futex, at, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace espalier::rings

// SPDX-License-Identifier: Apache-2.0
// Yields the processor where there is no single event to wait for: answers of several nodes, or the
// time of a node's next grant.
#pragma once

#include <poll.h>
#include <time.h>

#include <cstdint>
#include <thread>

namespace espalier::client {

/// Sleeps about so long, or until a signal. Requires: less than a second.
inline void pause_for(std::uint64_t ns) {
  timespec time{};
  time.tv_nsec = static_cast<long>(ns);
  ::ppoll(nullptr, 0, &time, nullptr);
}

/// After so many consecutive polls of several nodes without a result: yields, then sleeps briefly,
/// because no wait covers several nodes.
inline void pause_after(std::uint32_t looks) {
  constexpr std::uint32_t kLooksAwake = 2'000;
  constexpr std::uint64_t kPauseNs = 50'000;
  if (looks < kLooksAwake) {
    std::this_thread::yield();
  } else {
    pause_for(kPauseNs);
  }
}

}  // namespace espalier::client

// SPDX-License-Identifier: Apache-2.0
// Giving the processor away where there is no one event to wait for: answers of several nodes at
// once, or a time at which a node may grant again.
#pragma once

#include <poll.h>
#include <time.h>

#include <cstdint>
#include <thread>

namespace espalier::client {

/// About so long, or until a signal. Requires: less than a second.
inline void pause_for(std::uint64_t ns) {
  timespec time{};
  time.tv_nsec = static_cast<long>(ns);
  ::ppoll(nullptr, 0, &time, nullptr);
}

/// After so many looks in a row at several nodes that found nothing: yields, then pauses a little,
/// for no wait can be for several nodes at a time.
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

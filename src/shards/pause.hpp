// SPDX-License-Identifier: Apache-2.0
// Giving the processor away where there is no one event to wait for: answers of several nodes at
// once, or a time at which a node may grant again.
#pragma once

#include <poll.h>
#include <time.h>

#include <cstdint>

namespace espalier::client {

/// About so long, or until a signal. Requires: less than a second.
inline void pause_for(std::uint64_t ns) {
  timespec time{};
  time.tv_nsec = static_cast<long>(ns);
  ::ppoll(nullptr, 0, &time, nullptr);
}

}  // namespace espalier::client

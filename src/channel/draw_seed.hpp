// SPDX-License-Identifier: Apache-2.0
// Random seeds of hashes, so that clients cannot construct colliding keys.
#pragma once

#include <sys/random.h>

#include <cstdint>

#include "base/clock.hpp"

namespace espalier::client {

/// Cost: a system call.
[[nodiscard]] inline std::uint64_t draw_seed() {
  std::uint64_t drawn = 0;
  if (::getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != sizeof drawn) {
    drawn = base::monotonic_ns();
  }
  return drawn;
}

}  // namespace espalier::client

// SPDX-License-Identifier: Apache-2.0
#include "engine/services.hpp"

#include <sys/random.h>

#include "base/clock.hpp"

namespace espalier::offload {

// Without the system's numbers a seed is still another each time, only not a secret.
std::uint64_t Services::draw() {
  std::uint64_t drawn = 0;
  if (::getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != sizeof drawn) {
    drawn = base::monotonic_ns();
  }
  return drawn;
}

}  // namespace espalier::offload

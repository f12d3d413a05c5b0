// SPDX-License-Identifier: Apache-2.0
// How a ring's reader waits for the next slot without sleeping.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/atomic_bytes.hpp"
#include "base/user_wait.hpp"
#include "rings/ring.hpp"
#include "wire/ring.hpp"

namespace espalier::rings {

/// Waits a moment for the next slot. Cost: about a microsecond at most.
inline void wait_for_slot(const SlotReader& slots) {
  const auto seen = base::load_shared<std::uint32_t>(slots.next(), std::memory_order_acquire);
  if (seen != wire::sequence_of(slots.head())) base::wait_for_write(slots.next(), seen);
}

}  // namespace espalier::rings

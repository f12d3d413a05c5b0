// SPDX-License-Identifier: Apache-2.0
// Memory of a ring for tests, private to its two ends.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic_bytes.hpp"
#include "wire/ring.hpp"

namespace espalier::rings {

inline constexpr std::uint32_t kSlots = 64;

/// Memory of one ring, and the word of its credit. It stands as if all slots before `first` had
/// been written and read.
struct RingMemory {
  explicit RingMemory(std::uint64_t first = 0) {
    for (std::uint64_t n = first < kSlots ? 0 : first - kSlots; n < first; ++n) {
      base::store_plain(slots + n % kSlots * wire::kRingSlotBytes, wire::sequence_of(n));
    }
    base::store_shared(credit, first);
  }
  alignas(64) std::byte slots[kSlots * wire::kRingSlotBytes] = {};
  alignas(64) std::byte credit[64] = {};
};

}  // namespace espalier::rings

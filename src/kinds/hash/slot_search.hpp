// SPDX-License-Identifier: Apache-2.0
// Which slots of a bucket have a tag. Seven words of a line, without a branch on any of them.
//
// Thread: safe, no state; others may write the slots meanwhile, each of which is seen whole.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/atomic_bytes.hpp"
#include "kinds/hash/format.hpp"

namespace espalier::hash {

/// A bit for each slot that may name a record of this tag. Requires: the tag is not 0.
[[nodiscard]] inline std::uint32_t matching_slots(const std::byte* bucket, std::uint64_t tag) {
  const std::uint64_t wanted = tag << Slot::kTagShift;
  std::uint32_t found = 0;
  for (std::uint32_t i = 0; i < kSlotsPerBucket; ++i) {
    const auto slot = base::load_shared<std::uint64_t>(
        bucket + offsetof(Bucket, slots) + i * sizeof(Slot), std::memory_order_acquire);
    found |= ((slot & Slot::kSearchMask) == wanted ? 1u : 0u) << i;
  }
  return found;
}

/// The first of them. Requires: there is one.
[[nodiscard]] constexpr std::uint32_t first_match(std::uint32_t found) {
  return static_cast<std::uint32_t>(std::countr_zero(found));
}

}  // namespace espalier::hash

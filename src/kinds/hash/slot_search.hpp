// SPDX-License-Identifier: Apache-2.0
// Finds the slots of a bucket that have a tag: compares seven words of a line, without a branch on
// any of them.
//
// All that is compared of a slot is in its upper half. So on x86 the upper halves of the line's
// eight words are gathered into two vectors, with SSE2, which every such processor has; the scalar
// form is the oracle, and is used under ThreadSanitizer.
//
// Thread: safe, no state. Other threads may write the slots meanwhile, so a match is a hint: the
// caller loads the slot again, whole.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/atomic_bytes.hpp"
#include "base/barrier.hpp"
#include "kinds/hash/format.hpp"

namespace espalier::hash {

/// A bit for each slot that may name a record of this tag. Requires: the tag is not 0.
[[nodiscard]] inline std::uint32_t matching_slots_scalar(const std::byte* bucket,
                                                         std::uint64_t tag) {
  const std::uint64_t wanted = tag << Slot::kTagShift;
  std::uint32_t found = 0;
  for (std::uint32_t i = 0; i < kSlotsPerBucket; ++i) {
    const auto slot = base::load_shared<std::uint64_t>(
        bucket + offsetof(Bucket, slots) + i * sizeof(Slot), std::memory_order_acquire);
    found |= ((slot & Slot::kSearchMask) == wanted ? 1u : 0u) << i;
  }
  return found;
}

static_assert((Slot::kSearchMask & 0xFFFF'FFFF) == 0, "all that is compared is in upper halves");

/// The same.
[[nodiscard]] inline std::uint32_t matching_slots(const std::byte* bucket, std::uint64_t tag) {
#if defined(__x86_64__)
  if constexpr (!base::kThreadSanitizer) {
    const auto* const words = reinterpret_cast<const __m128*>(bucket);
    constexpr int kUpperHalves = _MM_SHUFFLE(3, 1, 3, 1);
    const __m128i mask = _mm_set1_epi32(static_cast<int>(Slot::kSearchMask >> 32));
    const __m128i wanted = _mm_set1_epi32(static_cast<int>(tag << Slot::kTagShift >> 32));
    const auto matches = [&](__m128 a, __m128 b) {
      const __m128i upper = _mm_castps_si128(_mm_shuffle_ps(a, b, kUpperHalves));
      const __m128i equal = _mm_cmpeq_epi32(_mm_and_si128(upper, mask), wanted);
      return static_cast<std::uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(equal)));
    };
    const std::uint32_t found = matches(words[0], words[1]) | matches(words[2], words[3]) << 4;
    std::atomic_signal_fence(std::memory_order_acquire);  // what follows is loaded after it
    return found >> 1;                                    // the first word is the header
  }
#endif
  return matching_slots_scalar(bucket, tag);
}

/// The first of them. Requires: there is one.
[[nodiscard]] constexpr std::uint32_t first_match(std::uint32_t found) {
  return static_cast<std::uint32_t>(std::countr_zero(found));
}

}  // namespace espalier::hash

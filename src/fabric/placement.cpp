// SPDX-License-Identifier: Apache-2.0
#include "fabric/placement.hpp"

#include "base/assert.hpp"
#include "base/prefetch.hpp"

namespace espalier::fabric {

PlacedCounts PlacedCounter::counts() const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  return {past_cache_bytes_.load(kRelaxed), persistent_bytes_.load(kRelaxed),
          granules_.load(kRelaxed), cached_lines_.load(kRelaxed)};
}

void PlacedCounter::count_placed(const std::byte* at, std::uint64_t bytes, Placement placement) {
  ESPALIER_ASSERT(bytes != 0);
  constexpr auto kRelaxed = std::memory_order_relaxed;
  if (placement.past_cache) past_cache_bytes_.fetch_add(bytes, kRelaxed);
  if (placement.kind != MemoryKind::persistent) return;
  persistent_bytes_.fetch_add(bytes, kRelaxed);
  // As it is mapped: persistent memory is mapped by pages, so its granules begin here as there.
  const auto first = reinterpret_cast<std::uintptr_t>(at);
  const std::uintptr_t last = first + bytes - 1;
  if (!placement.past_cache) {
    cached_lines_.fetch_add(last / base::kLineBytes - first / base::kLineBytes + 1, kRelaxed);
    return;
  }
  const std::uint64_t end = last / kGranuleBytes;
  const bool goes_on = last_granule_.exchange(end, kRelaxed) == first / kGranuleBytes;
  granules_.fetch_add(end - first / kGranuleBytes + (goes_on ? 0 : 1), kRelaxed);
}

}  // namespace espalier::fabric

// SPDX-License-Identifier: Apache-2.0
#include "fabric/placed_write.hpp"

#include "base/past_cache.hpp"
#include "fabric/planted_fabric_bugs.hpp"

namespace espalier::fabric {
namespace {

void fence_placed() {
  if (planted(Bug::acknowledged_before_fence)) return;
  base::fence_past_cache();
#if defined(ESPALIER_PLANTED_BUGS)
  if (StoreObserver* const observer = store_observer.load()) observer->fenced();
#endif
}

}  // namespace

void store_by_kind(std::byte* to, const std::byte* from, std::size_t bytes, Placement placement) {
  const bool past_cache = placement.past_cache && !planted(Bug::persistent_in_cache);
  if (past_cache) {
    base::store_past_cache(to, from, bytes);
  } else {
    copy_to_shared(to, from, bytes);
  }
#if defined(ESPALIER_PLANTED_BUGS)
  if (StoreObserver* const observer = store_observer.load()) {
    observer->stored(to, bytes, past_cache);
  }
#endif
  if (placement.past_cache) fence_placed();
}

}  // namespace espalier::fabric

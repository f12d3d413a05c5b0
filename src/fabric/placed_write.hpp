// SPDX-License-Identifier: Apache-2.0
// The stores of a WRITE, placed as its region demands (placement.hpp).
//
//   store_placed() each part, while its region is found  ->  finish_write()  ->  acknowledge it
//
// A part that bypasses the cache is fenced immediately, not only before the acknowledgement: a
// store that is still in flight when its region is revoked would overtake its owner's own.
//
// Thread: any; the fence is of the thread that has stored.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fabric/placement.hpp"
#include "fabric/shared_copy.hpp"

namespace espalier::fabric {

#if defined(ESPALIER_PLANTED_BUGS)
/// Receives the stores of WRITEs, for a test's model of a cache.
class StoreObserver {
 public:
  virtual ~StoreObserver() = default;
  virtual void stored(const std::byte* at, std::size_t bytes, bool past_cache) = 0;
  virtual void fenced() = 0;
};
inline std::atomic<StoreObserver*> store_observer{nullptr};
#endif

/// The slow path of store_placed(): placements other than ordinary stores alone. Stores that bypass
/// the cache have left the processor when this returns.
void store_by_kind(std::byte* to, const std::byte* from, std::size_t bytes, Placement placement);

/// Copies a part of a WRITE, from any address to any other.
inline void store_placed(std::byte* to, const std::byte* from, std::size_t bytes,
                         Placement placement) {
  if (placement.is_ordinary()) [[likely]] {
    return copy_to_shared(to, from, bytes);
  }
  store_by_kind(to, from, bytes, placement);
}

/// Counts a WRITE whose bytes are all in place: it may be acknowledged.
inline void finish_write(const WriteTarget& target, std::uint64_t bytes, PlacedCounter& counter) {
  if (bytes != 0) counter.count(target.at, bytes, target.placement);
}

}  // namespace espalier::fabric

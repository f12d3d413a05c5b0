// SPDX-License-Identifier: Apache-2.0
// The stores of a WRITE, as its region wants them placed (placement.hpp).
//
//   store_placed() each part, while its region is found  ->  finish_write()  ->  acknowledge it
//
// A part that goes past the cache is fenced at once, and not only before the acknowledgement: a
// store that is still under way when its region is given back would come after its owner's own.
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
/// What a test's model of a cache is told of the stores of WRITEs.
class StoreObserver {
 public:
  virtual ~StoreObserver() = default;
  virtual void stored(const std::byte* at, std::size_t bytes, bool past_cache) = 0;
  virtual void fenced() = 0;
};
inline std::atomic<StoreObserver*> store_observer{nullptr};
#endif

/// store_placed() of what is not placed by ordinary stores alone. What went past the cache has left
/// the processor when this returns.
void store_by_kind(std::byte* to, const std::byte* from, std::size_t bytes, Placement placement);

/// Copies a part of a WRITE, from any address to any other.
inline void store_placed(std::byte* to, const std::byte* from, std::size_t bytes,
                         Placement placement) {
  if (placement.is_ordinary()) [[likely]] {
    return copy_to_shared(to, from, bytes);
  }
  store_by_kind(to, from, bytes, placement);
}

/// All of a WRITE is in place: it may be acknowledged. Counts it.
inline void finish_write(const WriteTarget& target, std::uint64_t bytes, PlacedCounter& counter) {
  if (bytes != 0) counter.count(target.at, bytes, target.placement);
}

}  // namespace espalier::fabric

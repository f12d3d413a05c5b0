// SPDX-License-Identifier: Apache-2.0
// What the objects of one store share, whatever their kinds.
//
// Locks, in the order in which they may be taken:
//   catalogue -> parts of kinds -> stored objects, reclaimer -> what objects keep in reserve ->
//   pool
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/epoch.hpp"
#include "base/epoch_pins.hpp"
#include "base/lease_table.hpp"
#include "base/lease_terms.hpp"
#include "catalog/catalog.hpp"
#include "memory/buffer_pool.hpp"
#include "memory/reclaimer.hpp"
#include "memory/region.hpp"
#include "store/dropped_objects.hpp"
#include "store/store_parts.hpp"
#include "store/stored_object.hpp"

namespace espalier::store {
class ClockGroups;
}

namespace espalier::tree {

/// What the objects of one store share.
struct StoreCore {
  /// The epoch table goes into the region's first extent.
  StoreCore(memory::Region region_in, std::uint32_t participants_max);
  ~StoreCore();
  StoreCore(const StoreCore&) = delete;
  StoreCore& operator=(const StoreCore&) = delete;

  /// Whether leases keep memory that would be free without them. It is theirs for a bounded time:
  /// each is renewed, or lost, or ended when leases hold too much.
  [[nodiscard]] bool leases_hold_memory() const {
    return reclaimer.waits_for_leases() || dropped.size() != 0;
  }
  /// Whether a write that finds no memory should try again: some will be free, for leases end,
  /// snapshots expire, and what is pinned is soon copied.
  [[nodiscard]] bool others_hold_memory() const {
    return leases_hold_memory() || reclaimer.waits_for_snapshots() || reclaimer.waits_for_pins();
  }

  /// Whether there may be no room for a buffer. Where there is for the longest, what a write has
  /// not found is no memory of the store's: the heap has failed it.
  [[nodiscard]] bool is_full() const {
    return region.taken_bytes() + memory::kBufferBytesMax > region.limit_bytes();
  }

  /// Frees what waits and can be freed; where that is nothing, or `insists`, for it was not enough
  /// before, kinds give back what they have in reserve, then the oldest snapshots expire. Whether
  /// anything was freed, or some will be. Cost: a heavy barrier or two, and what kinds say of
  /// StorePart::give_back. Requires: no lock is held but the catalogue's or a map's structure lock.
  bool free_some(memory::BufferCache& cache, bool insists);

  /// Refills what objects keep in reserve for erases, if need be beyond the memory limit: recovery
  /// takes from it where a store is full, and does not give back. Returns whether all is refilled;
  /// if not, the addresses have run out. Requires: no thread uses the store, nor holds a lock.
  [[nodiscard]] bool refill_reserves();

  memory::Region region;
  memory::BufferPool pool;
  /// Of objects that share a clock, whose words lie in the region. Never null.
  const std::unique_ptr<store::ClockGroups> groups;
  base::EpochTable epochs;
  base::LeaseTable leases;     // of readers elsewhere
  base::EpochPins epoch_pins;  // of what is copied after its walk has ended
  memory::Reclaimer reclaimer;
  store::StoredObjects objects;  // that wait for leases when they are dropped
  store::StoreParts parts;  // of kinds: before what is dropped, which uses them until it is freed
  store::DroppedObjects dropped;
  catalog::Catalog catalog;  // last, for what it holds gives memory back to the others
};

/// How long a write that finds no memory waits for what leases hold (two renewals, and a sweep), or
/// for readers of snapshots that have expired.
inline constexpr std::uint64_t kLeasedTimeoutNs =
    2 * base::LeaseTerms{}.renew_every_ns + 20'000'000;

}  // namespace espalier::tree

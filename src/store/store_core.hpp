// SPDX-License-Identifier: Apache-2.0
// The state that all objects of one store share, whatever their kinds: the region, its allocator,
// clocks, epochs, leases, reclamation and the catalogue.
//
// Lock order:
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

struct StoreCore {
  /// Places the epoch table into the region's first extent.
  StoreCore(memory::Region region_in, std::uint32_t participants_max);
  ~StoreCore();
  StoreCore(const StoreCore&) = delete;
  StoreCore& operator=(const StoreCore&) = delete;

  /// Whether leases hold back memory that would be free without them. They do so for a bounded
  /// time: each is renewed or lost, or is ended when leases hold too much.
  [[nodiscard]] bool leases_hold_memory() const {
    return reclaimer.waits_for_leases() || dropped.size() != 0;
  }
  /// Whether a write that finds no memory should try again: leases end, snapshots expire, and
  /// pinned memory is soon copied.
  [[nodiscard]] bool others_hold_memory() const {
    return leases_hold_memory() || reclaimer.waits_for_snapshots() || reclaimer.waits_for_pins();
  }

  /// Whether there may be no room for a buffer of the largest class. If there is room, a write that
  /// found no memory lacked heap memory.
  [[nodiscard]] bool is_full() const {
    return region.taken_bytes() + memory::kBufferBytesMax > region.limit_bytes();
  }

  /// Frees waiting memory that can be freed. In a full store, if that is none or if `insists` (an
  /// earlier call was not enough), kinds give back reserves, then the oldest snapshots expire.
  /// Returns whether anything was freed, or some will be. Cost: a heavy barrier or two, and what
  /// kinds say of StorePart::give_back. Requires: no lock is held but the catalogue's or a map's
  /// structure lock.
  bool free_some(memory::BufferCache& cache, bool insists);

  /// Refills what objects keep in reserve for erases, if need be beyond the memory limit: recovery
  /// takes from it where a store is full, and does not give back. Returns whether all is refilled;
  /// if not, the addresses have run out. Requires: no thread uses the store, nor holds a lock.
  [[nodiscard]] bool refill_reserves();

  memory::Region region;
  memory::BufferPool pool;
  /// Clocks of objects that share one; their words lie in the region. Never null.
  const std::unique_ptr<store::ClockGroups> groups;
  base::EpochTable epochs;
  base::LeaseTable leases;     // of remote readers
  base::EpochPins epoch_pins;  // of values that are copied after their walk has ended
  memory::Reclaimer reclaimer;
  store::StoredObjects objects;  // those that wait for leases when dropped
  store::StoreParts parts;       // of kinds; outlives `dropped`, which uses it
  store::DroppedObjects dropped;
  catalog::Catalog catalog;  // last: its objects return memory to the others
};

/// How long a write that finds no memory waits for leases (two renewals, and a sweep) or for
/// readers of expired snapshots.
inline constexpr std::uint64_t kLeasedTimeoutNs =
    2 * base::LeaseTerms{}.renew_every_ns + 20'000'000;

}  // namespace espalier::tree

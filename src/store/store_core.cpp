// SPDX-License-Identifier: Apache-2.0
#include "store/store_core.hpp"

#include <utility>

#include "base/line_latency.hpp"
#include "memory/buffer_cache.hpp"
#include "store/clock_groups.hpp"
#include "store/thread_context.hpp"

namespace espalier::tree {

StoreCore::StoreCore(memory::Region region_in, std::uint32_t participants_max)
    : region(std::move(region_in)),
      pool(region),
      groups(std::make_unique<store::ClockGroups>(pool)),
      epochs(base::EpochTable::create(region.header(), participants_max)),
      leases(epochs),
      reclaimer(pool, epochs, leases, epoch_pins,
                region.limit_bytes() / memory::Reclaimer::kSnapshotShare),
      dropped(epochs, leases),
      catalog(*this) {
  // Kinds choose by it how far ahead they prefetch: measured now, no request pays for it.
  base::line_latency_of_machine_ns();
  pool.set_reclaim([this](bool insists) {
    memory::BufferCache cache(pool);
    return free_some(cache, insists);
  });
}

StoreCore::~StoreCore() = default;

bool StoreCore::free_some(memory::BufferCache& cache, bool insists) {
  bool freed = reclaimer.collect(cache);
  if ((freed && !insists) || !is_full()) return freed;
  freed = parts.give_back(cache) || freed;
  if (freed && !insists) return true;
  if (reclaimer.expire_oldest()) freed = reclaimer.collect(cache) || freed;
  return freed || reclaimer.waits_for_snapshots() || reclaimer.waits_for_pins();
}

bool StoreCore::refill_reserves() {
  memory::BufferCache cache(pool);
  const auto refill = [&] {
    bool all = true;
    objects.for_each([&](store::StoredObject& object) {
      const bool refilled = object.is_dropped() || object.refill_reserve(cache);
      all = all && refilled;
    });
    return all;
  };
  if (refill()) return true;
  make_room(*this, cache, true);
  if (refill()) return true;
  // At most a MiB for each object. Writes that free nothing are refused until it is free again.
  region.lift_limit(true);
  const bool refilled = refill();
  region.lift_limit(false);
  return refilled;
}

ThreadContext::ThreadContext(StoreCore& store_in, base::EpochSlot slot_in, std::uint32_t index_in)
    : store(store_in), slot(std::move(slot_in)), cache(store_in.pool), index(index_in) {}

void make_room(ThreadContext& context, bool insists) {
  make_room(context.store, context.cache, insists);
}

void make_room(StoreCore& store, memory::BufferCache& cache, bool insists) {
  store.dropped.collect();
  store.free_some(cache, insists);
  store.objects.for_each([](store::StoredObject& object) { object.repack_spares(); });
  store.pool.recall();
  if (store.leases_hold_memory()) store.leases.ask_for_sweep();
}

}  // namespace espalier::tree

// SPDX-License-Identifier: Apache-2.0
#include "store/store_core.hpp"

namespace espalier::tree {

bool StoreCore::free_some(memory::BufferCache& cache, bool insists) {
  bool freed = reclaimer.collect(cache);
  // Where there is room for the longest buffer, what a write has not found is no memory of the
  // store's: the heap has failed it.
  const bool full = region.taken_bytes() + memory::kBufferBytesMax > region.limit_bytes();
  if ((freed && !insists) || !full) return freed;
  freed = parts.give_back(cache) || freed;
  if (freed && !insists) return true;
  if (reclaimer.expire_oldest()) freed = reclaimer.collect(cache) || freed;
  return freed || reclaimer.waits_for_snapshots() || reclaimer.waits_for_pins();
}

void make_room(ThreadContext& context, bool insists) {
  StoreCore& store = context.store;
  store.dropped.collect();
  store.free_some(context.cache, insists);
  store.objects.for_each([](store::StoredObject& object) { object.repack_spares(); });
  store.pool.recall();
  if (store.leases_hold_memory()) store.leases.ask_for_sweep();
}

}  // namespace espalier::tree

// SPDX-License-Identifier: Apache-2.0
// One thread's hold on a store, and what it does where a write finds no memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/epoch.hpp"
#include "memory/buffer_cache.hpp"
#include "memory/retired_list.hpp"

namespace espalier::tree {

struct StoreCore;

/// One thread's hold on a store: its epoch slot and its private buffers.
struct ThreadContext {
  ThreadContext(StoreCore& store_in, base::EpochSlot slot_in, std::uint32_t index_in);

  StoreCore& store;
  base::EpochSlot slot;
  memory::BufferCache cache;
  memory::RetiredStock retired;   // for what its writes unlink
  std::uint32_t index;            // picks the shard of counters
  std::size_t retired_taken = 0;  // of the stock, by changes under way (of a transaction several)
};

/// For a write that finds no memory: frees what waits and can be freed, has the oldest snapshots
/// expire where that is nothing or `insists`, gives back all that is put by and keeps memory from
/// other classes of buffers, and asks for a sweep of leases if they hold some. Cost: a heavy
/// barrier or two, the pool's locks. Requires: no lock is held; what the worker itself exposes
/// holds back what waits.
void make_room(ThreadContext& context, bool insists = false);
void make_room(StoreCore& store, memory::BufferCache& cache, bool insists);

}  // namespace espalier::tree

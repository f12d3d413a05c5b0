// SPDX-License-Identifier: Apache-2.0
// One thread's access to a store, and how a write that finds no memory makes room.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/epoch.hpp"
#include "memory/buffer_cache.hpp"
#include "memory/retired_list.hpp"

namespace espalier::tree {

struct StoreCore;

/// One thread's access to a store: its epoch slot and its private buffers. Thread: its own.
struct ThreadContext {
  ThreadContext(StoreCore& store_in, base::EpochSlot slot_in, std::uint32_t index_in);

  StoreCore& store;
  base::EpochSlot slot;
  memory::BufferCache cache;
  memory::RetiredStock retired;   // reserved for what its writes unlink
  std::uint32_t index;            // picks the shard of counters
  std::size_t retired_taken = 0;  // of the stock, by changes under way
};

/// For a write that finds no memory: StoreCore::free_some(), which returns reserves and expires
/// snapshots as needed, moves memory over from other classes of buffers, and asks for a sweep of
/// leases if they hold some. Cost: a heavy barrier or two, the pool's locks. Requires: no lock is
/// held; epochs that the calling thread exposes hold memory back.
void make_room(ThreadContext& context, bool insists = false);
void make_room(StoreCore& store, memory::BufferCache& cache, bool insists);

}  // namespace espalier::tree

// SPDX-License-Identifier: Apache-2.0
// The parts of a store that hash maps use, and one thread's handle on them.
#pragma once

#include <expected>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/epoch.hpp"
#include "catalog/catalog.hpp"
#include "kinds/hash/partition_lock.hpp"
#include "memory/buffer_cache.hpp"
#include "memory/buffer_pool.hpp"
#include "memory/reclaimer.hpp"
#include "memory/retired_list.hpp"
#include "store/dropped_objects.hpp"
#include "store/stored_object.hpp"

namespace espalier::tree {
struct StoreCore;
}

namespace espalier::hash {

class HashMap;
class HashThreads;

/// The hash maps of a store, for the reclamation of its memory (BufferPool::set_reclaim): free
/// memory leaves a map even if no thread writes it.
/// Thread: any. Its lock is taken before those of partitions.
class HashMaps {
 public:
  /// Errors: std::bad_alloc.
  void add(HashMap& map) {
    const std::lock_guard lock(mutex_);
    maps_.push_back(&map);
  }
  void remove(const HashMap& map) noexcept {
    const std::lock_guard lock(mutex_);
    std::erase(maps_, &map);
  }
  /// Takes out links that the reclaimer found free, hands over retired memory, and gives back the
  /// stock. Returns whether maps have less memory now. Cost: every partition's lock, heavy
  /// barriers. Requires: no lock is held but the catalogue's.
  bool give_back(memory::Reclaimer& reclaimer, memory::BufferCache& cache) noexcept;

 private:
  std::mutex mutex_;  // guards the list, and is held while the maps are used
  std::vector<HashMap*> maps_;
  LockHolder holder_;  // of the thread that holds the lock
};

/// The store's parts, which outlive it; it outlives its maps.
struct HashStore {
  tree::StoreCore& core;
  memory::BufferPool& pool;
  base::EpochTable epochs;
  memory::Reclaimer& reclaimer;
  catalog::Catalog& catalog;
  store::StoredObjects& objects;
  store::DroppedObjects& dropped;
  LockHolders holders{};
  HashMaps maps{};
  /// For threads without a HashThread of their own (hash_threads.hpp); null: there are none.
  std::shared_ptr<HashThreads> threads{};
};

/// The HashStore of the store with this catalogue; made on first use.
/// Errors: std::bad_alloc. Requires: it is the catalogue of a store.
[[nodiscard]] HashStore& hash_store_of(const catalog::Catalog& catalog);

/// One thread's handle on a store: the epoch that it exposes while it reads, a cache of buffers,
/// and its identity towards locks. Thread: one at a time.
class HashThread {
 public:
  /// Errors: those of EpochTable::join(). Throws std::bad_alloc.
  [[nodiscard]] static Result<HashThread> join(HashStore& store) {
    auto slot = store.epochs.join();
    if (!slot) return std::unexpected(slot.error());
    return HashThread(store, std::move(*slot));
  }

  [[nodiscard]] LockHolder& holder() { return *holder_; }

  base::EpochSlot slot;
  std::unique_ptr<memory::BufferCache> cache;
  /// List elements for what its writes unlink.
  std::unique_ptr<memory::RetiredStock> elements;

 private:
  struct GiveBack {
    HashStore* store;
    void operator()(LockHolder* holder) const { store->holders.give(*holder); }
  };

  HashThread(HashStore& store, base::EpochSlot slot_in)
      : slot(std::move(slot_in)),
        cache(std::make_unique<memory::BufferCache>(store.pool)),
        elements(std::make_unique<memory::RetiredStock>()),
        holder_(&store.holders.take(), GiveBack{&store}) {}

  std::unique_ptr<LockHolder, GiveBack> holder_;
};

/// Exposes a thread's epoch for a scope, exceptions included.
/// Requires: the thread exposes none.
class ExposedEpoch {
 public:
  explicit ExposedEpoch(HashThread& thread) : slot_(thread.slot) { slot_.enter(); }
  ~ExposedEpoch() { slot_.exit(); }
  ExposedEpoch(const ExposedEpoch&) = delete;
  ExposedEpoch& operator=(const ExposedEpoch&) = delete;

 private:
  base::EpochSlot& slot_;
};

}  // namespace espalier::hash

// SPDX-License-Identifier: Apache-2.0
// What hash maps need of the store in which they lie, and one thread's hold on it.
#pragma once

#include <expected>
#include <memory>
#include <utility>

#include "base/epoch.hpp"
#include "catalog/catalog.hpp"
#include "kinds/hash/partition_lock.hpp"
#include "memory/buffer_pool.hpp"
#include "memory/reclaimer.hpp"

namespace espalier::hash {

/// The parts of a store. They outlive it.
struct HashStore {
  memory::BufferPool& pool;
  base::EpochTable epochs;
  memory::Reclaimer& reclaimer;
  catalog::Catalog& catalog;
  LockHolders holders{};
};

/// One thread's hold on a store: what it exposes while it reads, buffers of its own, and who it is
/// to locks. Thread: one at a time.
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

 private:
  struct GiveBack {
    HashStore* store;
    void operator()(LockHolder* holder) const { store->holders.give(*holder); }
  };

  HashThread(HashStore& store, base::EpochSlot slot_in)
      : slot(std::move(slot_in)),
        cache(std::make_unique<memory::BufferCache>(store.pool)),
        holder_(&store.holders.take(), GiveBack{&store}) {}

  std::unique_ptr<LockHolder, GiveBack> holder_;
};

/// Exposes a thread's epoch as long as it lives, whatever is thrown meanwhile.
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

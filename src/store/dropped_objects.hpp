// SPDX-License-Identifier: Apache-2.0
// Deferred reclamation of dropped objects: keeps an object that was dropped and that no thread of
// the host holds, until no remote reader can be reading it (DESIGN §2.1 rule 5, §2.2 rule 9).
//
//     drop: superseded = 0      last handle gone: stamped          every lease is newer
//   -------------------------> ------------------------> waiting ----------------------> freed
//
// A thread of the host holds the object itself while it reads, so only leases are compared with the
// stamp, not the host's epochs. A walk under a lease that was granted or renewed after the stamp
// begins after the object's header was marked as dropped.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/epoch.hpp"
#include "base/lease_table.hpp"
#include "store/stored_object.hpp"

namespace espalier::store {

class DroppedObjects {
 public:
  DroppedObjects(base::EpochTable epochs, const base::LeaseTable& leases);
  /// Frees all waiting objects. Requires: no lease is held.
  ~DroppedObjects();
  DroppedObjects(const DroppedObjects&) = delete;
  DroppedObjects& operator=(const DroppedObjects&) = delete;

  /// Takes a dropped object that no thread of the host holds. Frees it immediately if no lease
  /// holds it back, unless free_in_steps() is on. Requires: is_dropped().
  void add(std::unique_ptr<StoredObject> object) noexcept;
  /// Frees all objects that no lease holds back any more. Cost: returns all their buffers to the
  /// pool.
  void collect() noexcept;
  /// While on, add() frees nothing: another thread calls collect_some() when due() returns true.
  void free_in_steps(bool in_steps) { in_steps_.store(in_steps, std::memory_order_relaxed); }
  /// Does up to `steps` steps of bounded work (StoredObject::free_some) on the oldest waiting
  /// object. Returns whether there is more.
  [[nodiscard]] bool collect_some(std::uint32_t steps) noexcept;
  /// Whether collect() would free an object.
  [[nodiscard]] bool due() const;

  /// Bytes of waiting buffers.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_held_since(0); }
  /// Those of them that a lease of this epoch holds back.
  [[nodiscard]] std::uint64_t bytes_held_since(std::uint64_t epoch) const;
  [[nodiscard]] std::size_t size() const;
  /// Stamp of the oldest waiting object; 0: none waits.
  [[nodiscard]] std::uint64_t oldest_stamp() const;

 private:
  /// Removes and returns the oldest waiting object, if no lease holds it back.
  [[nodiscard]] std::unique_ptr<StoredObject> take_free();

  void put_back(std::unique_ptr<StoredObject> object);

  base::EpochTable epochs_;
  std::atomic<bool> in_steps_{false};
  const base::LeaseTable* leases_;
  mutable std::mutex mutex_;  // guards the rest, and `waiting_` of the objects here
  // The waiting objects, linked; stamps ascend.
  StoredObject* first_ = nullptr;
  StoredObject* last_ = nullptr;
};

}  // namespace espalier::store

// SPDX-License-Identifier: Apache-2.0
// Objects that were dropped and that the host holds no longer, until no reader elsewhere can be
// reading them (DESIGN §2.1 rule 5, §2.2 rule 9).
//
//     drop: superseded = 0      last handle gone: stamped          every lease is newer
//   -------------------------> ------------------------> waiting ----------------------> freed
//
// Threads of the host hold the object itself while they read it, so their epochs do not matter
// here; leases do. A lease that was granted or renewed after the stamp begins its walks after the
// object's header said that it is gone.
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
  /// Frees all that wait. Requires: no lease is held.
  ~DroppedObjects();
  DroppedObjects(const DroppedObjects&) = delete;
  DroppedObjects& operator=(const DroppedObjects&) = delete;

  /// Takes a dropped object that no thread of the host holds, and frees it if no lease holds it
  /// back; not where others free in steps. Requires: is_dropped().
  void add(std::unique_ptr<StoredObject> object) noexcept;
  /// Frees those that no lease holds back any more. Cost: that of giving back all their buffers.
  void collect() noexcept;
  /// From now on (or no more), others call collect_some() where due() says so.
  void free_in_steps(bool in_steps) { in_steps_.store(in_steps, std::memory_order_relaxed); }
  /// Does so many steps of that, each of bounded work (StoredObject::free_some), at the one that
  /// has waited longest. Returns whether there is more.
  [[nodiscard]] bool collect_some(std::uint32_t steps) noexcept;
  /// Whether collect() would free one.
  [[nodiscard]] bool due() const;

  /// Bytes of buffers that wait.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_held_since(0); }
  /// Of these, what a lease of this epoch holds back.
  [[nodiscard]] std::uint64_t bytes_held_since(std::uint64_t epoch) const;
  [[nodiscard]] std::size_t size() const;
  /// Of the object that has waited longest; 0: none waits.
  [[nodiscard]] std::uint64_t oldest_stamp() const;

 private:
  /// The one that has waited longest, if no lease holds it back.
  [[nodiscard]] std::unique_ptr<StoredObject> take_free();

  void put_back(std::unique_ptr<StoredObject> object);

  base::EpochTable epochs_;
  std::atomic<bool> in_steps_{false};
  const base::LeaseTable* leases_;
  mutable std::mutex mutex_;  // guards the rest, and what objects here have in `waiting_`
  // Those that wait, linked; stamps ascend.
  StoredObject* first_ = nullptr;
  StoredObject* last_ = nullptr;
};

}  // namespace espalier::store

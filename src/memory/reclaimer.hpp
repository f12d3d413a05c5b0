// SPDX-License-Identifier: Apache-2.0
// Epoch-based reclamation of buffers: keeps unlinked buffers until no reader can reach them.
//
//     unlinked at version w            released        stamped, epoch passed
//   ----------------------> unreleased --------> stamped -------------------> free
//                                          ^         |
//                                          |         v   a snapshot is older than w
//                                          +------- held
//
// Invariants (DESIGN §2.1 rule 5)
// 1. A buffer is stamped only after the version that superseded it is released: a reader that began
//    before may still read at an older version and be led to it.
// 2. A buffer that a snapshot may need (snapshot version < w) is held. When the last such snapshot
//    is dropped, the buffer is stamped anew.
// 3. Snapshots of one object hold at most its limit, and those of all objects together a share of
//    the store's memory. Beyond that, and when a write finds no memory, the oldest snapshots
//    expire. Buffers that an expired snapshot needed, held or still stamped, are stamped anew,
//    because walks at it that have begun still read them.
// 4. A buffer is free only when every exposed or pinned epoch and every lease is newer than its
//    stamp.
// 5. Reclamation never fails for lack of memory: all list elements are allocated before the buffer
//    is unlinked (retired_list.hpp), and collect() allocates nothing.
//
// Thread: any; one mutex, taken once per handful of writes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/epoch.hpp"
#include "base/epoch_pins.hpp"
#include "base/lease_table.hpp"
#include "memory/held_version.hpp"
#include "memory/retired_list.hpp"
#include "memory/versioned_object.hpp"

namespace espalier::memory {

class BufferPool;
class VersionClock;
struct Holder;

class Reclaimer {
 public:
  /// The fraction (1 / kSnapshotShare) of a store's memory that the snapshots of all its objects
  /// may hold together.
  static constexpr std::uint64_t kSnapshotShare = 4;

  /// `snapshot_bytes_max`: limit on the bytes that the snapshots of all objects hold together.
  Reclaimer(BufferPool& pool, base::EpochTable epochs, const base::LeaseTable& leases,
            const base::EpochPins& epoch_pins, std::uint64_t snapshot_bytes_max)
      : pool_(&pool),
        epochs_(epochs),
        leases_(&leases),
        epoch_pins_(&epoch_pins),
        snapshot_bytes_max_(snapshot_bytes_max) {}

  /// Registers an object, until forget(). Its name and clock must outlive the registration; several
  /// objects may share one clock. `snapshot_bytes_max`: limit on the bytes that its snapshots hold.
  /// Errors: std::bad_alloc. Requires: the object is not registered yet, and its clock is attached.
  void add(VersionedObject& object, std::string_view name, const VersionClock& clock,
           std::uint64_t snapshot_bytes_max);
  /// Adopts unlinked buffers. Requires: as many elements in stock.
  void retire(VersionedObject& object, RetiredStock& stock,
              std::span<const Retired> retired) noexcept;
  /// Frees all buffers that can be freed, into spares and `cache`. Returns whether anything was
  /// freed.
  bool collect(BufferCache& cache) noexcept;
  /// Whether buffers wait for readers, local or remote, or for writes under way to be released.
  [[nodiscard]] bool waits_for_readers() const;
  /// Whether buffers wait for snapshots, or for readers of snapshots that have expired.
  [[nodiscard]] bool waits_for_snapshots() const;
  /// Whether buffers wait for pinned epochs, which last for one copy.
  [[nodiscard]] bool waits_for_pins() const;
  /// Whether buffers wait for a lease.
  [[nodiscard]] bool waits_for_leases() const;
  /// Thresholds above which collect() pays: it interrupts every core that runs one of our threads,
  /// which takes longer than rewriting a leaf.
  static constexpr std::uint32_t kDue = 64;  // buffers
  static constexpr std::uint64_t kDueBytes = std::uint64_t{1} << 20;
  [[nodiscard]] bool due() const {
    return retired_since_.load(std::memory_order_relaxed) >= kDue ||
           retired_bytes_since_.load(std::memory_order_relaxed) >= kDueBytes;
  }

  /// Registers a held version. Requires: the caller exposed its epoch before it read `version`.
  /// `owner` names the holder for operators. Errors: std::bad_alloc, and nothing is held.
  std::list<HeldVersion>::iterator hold(VersionedObject& object, std::uint64_t version,
                                        std::string owner = {});
  void drop(VersionedObject& object, std::list<HeldVersion>::iterator held) noexcept;
  /// For a write that finds no memory: expires the oldest snapshots of all objects, until kDueBytes
  /// that they held wait for readers alone, or no snapshot holds anything. Does nothing while a
  /// reader keeps the buffers of the last expired ones. Returns whether any snapshot expired.
  bool expire_oldest() noexcept;

  /// Unregisters an object that is being dropped, and frees all its retired buffers.
  void forget(VersionedObject& object) noexcept;

  struct Waiting {
    std::uint64_t bytes = 0;
    std::vector<Retired> buffers;
    std::uint64_t ids = 0;
    std::uint64_t snapshots = 0;
  };
  /// The snapshots of all objects together.
  struct Snapshots {
    std::uint64_t count = 0;      // of snapshots that have not expired
    std::uint64_t bytes = 0;      // held
    std::uint64_t bytes_max = 0;  // limit
    std::uint64_t expired = 0;    // since the store was opened
  };
  [[nodiscard]] Snapshots snapshots() const;
  /// Bytes that only leases hold back, no epoch.
  [[nodiscard]] std::uint64_t bytes_held_by_leases() const;
  /// The holders of retired memory, by descending bytes, at most `most`. A reader counts from its
  /// exposed epoch on, so one that keeps up holds 0 bytes and is omitted; leases and snapshots are
  /// always listed. `others`: the bytes outside this reclaimer that a lease of this epoch holds
  /// back.
  /// Cost: the tables of epochs and leases, all retired buffers, under the lock.
  [[nodiscard]] std::vector<Holder> holders(
      const std::function<std::uint64_t(std::uint64_t epoch)>& others, std::size_t most = 64) const;
  /// Retired memory of one object: its bytes and snapshots, and with `list` also its buffers and
  /// ids. Cost: without `list` no more than the lock; with it a pass over the retired buffers of
  /// all objects.
  [[nodiscard]] Waiting waiting(const VersionedObject& object, bool list) const;

 private:
  struct PerObject {
    std::string_view name;
    const VersionClock* clock = nullptr;
    std::uint64_t snapshot_bytes_max = 0;
    RetiredList unreleased;
    RetiredList held;
    std::uint64_t held_bytes = 0;
    std::uint64_t retired_bytes = 0;  // unreleased, held or stamped
    std::list<HeldVersion> versions;  // ascending
    std::list<HeldVersion> expired;   // until they are dropped
  };
  /// An empty stock is refilled up to so many elements, from freed ones.
  static constexpr std::size_t kStocked = 8;
  /// Spare elements kept for that; others go back to the heap.
  static constexpr std::size_t kSparesMax = 1024;

  [[nodiscard]] PerObject& of(VersionedObject& object) { return objects_.find(&object)->second; }
  void stamp(RetiredNode* node, std::uint64_t epoch);
  void free(RetiredNode* node, BufferCache* cache);
  [[nodiscard]] static bool needed(const PerObject& state, std::uint64_t version);
  void release_held(PerObject& state);
  void expire_first(const VersionedObject* object, PerObject& state);
  void stamp_anew(const VersionedObject* object, std::uint64_t version);
  bool expire_oldest_of_all();
  void expire_beyond_limits(const VersionedObject& object, PerObject& state);
  /// For each of these epochs, which ascend, the stamped bytes that a reader of that epoch keeps,
  /// alone or with others. Cost: one pass over the stamped buffers.
  [[nodiscard]] std::vector<std::uint64_t> bytes_held_since(
      std::span<const std::uint64_t> epochs) const;
  /// The snapshots of all objects, without expired ones, which hold nothing.
  [[nodiscard]] std::vector<Holder> snapshot_holders() const;

  BufferPool* pool_;
  base::EpochTable epochs_;
  const base::LeaseTable* leases_;
  const base::EpochPins* epoch_pins_;
  const std::uint64_t snapshot_bytes_max_;
  mutable std::mutex mutex_;  // guards all below
  std::unordered_map<const VersionedObject*, PerObject> objects_;
  RetiredList stamped_;  // stamps ascend
  RetiredStock spares_;
  std::uint64_t held_bytes_ = 0;     // of all objects
  std::uint64_t next_number_ = 1;    // of a held version
  std::uint64_t expired_count_ = 0;  // versions, ever
  std::uint64_t expired_stamp_ = 0;  // of the buffers of the last snapshot to expire
  std::atomic<std::uint32_t> retired_since_{0};
  std::atomic<std::uint64_t> retired_bytes_since_{0};
};

}  // namespace espalier::memory

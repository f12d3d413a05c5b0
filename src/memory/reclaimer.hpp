// SPDX-License-Identifier: Apache-2.0
// What was unlinked, until no reader can reach it.
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
// 2. A buffer that a snapshot may need (snapshot version < w) is held; when the last such snapshot
//    goes, it is stamped anew.
// 3. Snapshots of one object hold at most its limit, and those of all together a share of the
//    store's memory; beyond that the oldest of them expire, and so they do where a write finds no
//    memory. What such a snapshot needed, held or still stamped, is stamped anew: walks at it that
//    have begun still read it.
// 4. A buffer is free only when every exposed or pinned epoch and every lease is newer than its
//    stamp.
// 5. What was unlinked is never lost for want of memory: the elements of all lists were there
//    before it was unlinked (retired_list.hpp), and to collect asks the heap for nothing.
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
  /// Of a store's memory, the part that the snapshots of all its objects may hold together.
  static constexpr std::uint64_t kSnapshotShare = 4;

  /// `snapshot_bytes_max`: what the snapshots of all objects may hold together.
  Reclaimer(BufferPool& pool, base::EpochTable epochs, const base::LeaseTable& leases,
            const base::EpochPins& epoch_pins, std::uint64_t snapshot_bytes_max)
      : pool_(&pool),
        epochs_(epochs),
        leases_(&leases),
        epoch_pins_(&epoch_pins),
        snapshot_bytes_max_(snapshot_bytes_max) {}

  /// Begins to serve an object, until forget(). Until then the object's name and clock must last;
  /// several objects may have one clock. `snapshot_bytes_max`: what its snapshots may hold. Errors:
  /// std::bad_alloc. Requires: the object is not served yet, and its clock is attached.
  void add(VersionedObject& object, std::string_view name, const VersionClock& clock,
           std::uint64_t snapshot_bytes_max);
  /// Takes over what was unlinked. Requires: as many elements in stock.
  void retire(VersionedObject& object, RetiredStock& stock,
              std::span<const Retired> retired) noexcept;
  /// Frees what can be freed, into spares and `cache`. Returns whether anything was freed.
  bool collect(BufferCache& cache) noexcept;
  /// Whether something would be freed if readers, here or elsewhere, let go of it, or writes under
  /// way were released.
  [[nodiscard]] bool waits_for_readers() const;
  /// Whether snapshots keep some of it, or have until they expired, and readers that were there
  /// still do.
  [[nodiscard]] bool waits_for_snapshots() const;
  /// Whether what is being copied keeps some of it, for that moment.
  [[nodiscard]] bool waits_for_pins() const;
  /// Whether a lease keeps some of it.
  [[nodiscard]] bool waits_for_leases() const;
  /// What makes collecting worthwhile: it interrupts every core that runs one of our threads, which
  /// takes longer than to write a leaf anew.
  static constexpr std::uint32_t kDue = 64;  // buffers
  static constexpr std::uint64_t kDueBytes = std::uint64_t{1} << 20;
  [[nodiscard]] bool due() const {
    return retired_since_.load(std::memory_order_relaxed) >= kDue ||
           retired_bytes_since_.load(std::memory_order_relaxed) >= kDueBytes;
  }

  /// Registers a held version. The caller's epoch must be exposed since before it read `version`.
  /// `owner` tells operators what holds it. Errors: std::bad_alloc, and nothing is held.
  std::list<HeldVersion>::iterator hold(VersionedObject& object, std::uint64_t version,
                                        std::string owner = {});
  void drop(VersionedObject& object, std::list<HeldVersion>::iterator held) noexcept;
  /// For a write that finds no memory: expires the oldest snapshots of all objects until kDueBytes
  /// that they held wait for readers alone, or none holds anything. Not while a reader holds what
  /// the last ones held. Returns whether any was expired.
  bool expire_oldest() noexcept;

  /// Forgets an object that is being dropped and frees all that waits for it.
  void forget(VersionedObject& object) noexcept;

  struct Waiting {
    std::uint64_t bytes = 0;
    std::vector<Retired> buffers;
    std::uint64_t ids = 0;
    std::uint64_t snapshots = 0;
  };
  /// The snapshots of all objects together.
  struct Snapshots {
    std::uint64_t count = 0;      // that hold, or may come to hold, something
    std::uint64_t bytes = 0;      // that they hold
    std::uint64_t bytes_max = 0;  // that they may
    std::uint64_t expired = 0;    // since the store was opened
  };
  [[nodiscard]] Snapshots snapshots() const;
  /// Bytes that leases hold back, and no epoch: what would be free without them.
  [[nodiscard]] std::uint64_t bytes_held_by_leases() const;
  /// What keeps memory from being free, that of most bytes first, at most `most`. Readers count
  /// from their exposed epoch on, so one that keeps up with the present holds 0 bytes and is left
  /// out; leases and snapshots are always listed. `others`: the bytes that a lease of this epoch
  /// holds back besides those that wait here.
  /// Cost: the tables of epochs and leases, all retired buffers, under the lock.
  [[nodiscard]] std::vector<Holder> holders(
      const std::function<std::uint64_t(std::uint64_t epoch)>& others, std::size_t most = 64) const;
  /// What waits for one object: its bytes and snapshots, and where `list` also all else. Cost:
  /// without `list` no more than the lock; with it a pass over what waits of all objects.
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
  /// A stock that is used up is filled up to so many, from what was freed.
  static constexpr std::size_t kStocked = 8;
  /// Elements that are kept for that; more go back to the heap.
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
  /// For each of these epochs, which ascend, the bytes that wait and that a reader keeps, perhaps
  /// with others, whose epoch it is. Cost: one pass over what is stamped.
  [[nodiscard]] std::vector<std::uint64_t> bytes_held_since(
      std::span<const std::uint64_t> epochs) const;
  /// The snapshots of all objects; those that have expired hold nothing and are left out.
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
  std::uint64_t expired_stamp_ = 0;  // of what the last one to expire held
  std::atomic<std::uint32_t> retired_since_{0};
  std::atomic<std::uint64_t> retired_bytes_since_{0};
};

}  // namespace espalier::memory

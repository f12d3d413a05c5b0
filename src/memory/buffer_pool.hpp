// SPDX-License-Identifier: Apache-2.0
// Buffers of size classes inside a region: a slab allocator for nodes and out-of-line values.
//
// The pool takes memory in units (extent.hpp). Each unit belongs to one class for the pool's
// lifetime and is cut into equal buffers; an empty unit returns its memory but keeps its class.
// Each unit keeps its free buffers on its own stack, so that the buffer freed last, still in a
// processor's cache, is reused first, and so that a wholly free unit is returned without a search.
// All lists are in process memory: a client with write access to the region could redirect links
// inside it. Each thread allocates through a BufferCache (buffer_cache.hpp), which avoids the
// locks.
//
// A buffer starts with wire::BufferHeader, and the pool keeps what references rely on:
// I1. A buffer that allocate() returns has superseded == 0 and a generation that no earlier buffer
//     at this offset had (until the 28 bits that references carry wrap).
// I2. The generation's low 28 bits are never 0.
// I3. retire_header() stores superseded = 0 before it moves the generation on, and both before the
//     buffer can be allocated again: a reader with an old reference sees 0, the new generation, or
//     what it expects from before.
// I4. A unit remembers the highest generation that it ever saw, beyond being given back, and hands
//     out only higher ones afterwards.
// I5. Buffers in use + free (here and in caches) = all that the units of the class were cut into.
// I6. Where a buffer ever began, no buffer has its inside, and the other way round: a unit keeps
//     its class, and an extent of slabs keeps its kind.
//
// If the heap has no memory for the pool's own lists, allocation fails with out_of_memory too;
// releasing a buffer allocates nothing.
//
// Thread: any. Locks: caches, then one class, then the slabs' and the region's; never two classes
// at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "espalier/error.hpp"
#include "memory/extent.hpp"
#include "memory/lazy_array.hpp"
#include "memory/region.hpp"
#include "memory/size_class.hpp"

namespace espalier::memory {

class BufferCache;

/// Statistics of one class, in buffers. Exact when no thread allocates or releases meanwhile.
struct ClassStats {
  std::uint64_t taken = 0;   // all that the units of the class were cut into
  std::uint64_t in_use = 0;  // allocated and not released
  std::uint64_t free = 0;    // in the pool and in caches
};

class BufferPool {
 public:
  /// Requires: the region stays where it is and outlives the pool.
  explicit BufferPool(Region& region);
  /// Returns all its memory to the region. Requires: its caches are destroyed.
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// The smallest class of values that holds so many bytes; kClasses if none does.
  [[nodiscard]] static constexpr SizeClass class_of(std::uint64_t bytes) {
    return memory::class_of(bytes);
  }
  [[nodiscard]] static constexpr std::uint64_t class_bytes(SizeClass cls) {
    return memory::class_bytes(cls);
  }

  /// Returns the offset of a free buffer. Its header is as in I1; the rest is unspecified. The
  /// caller must leave the generation as it is. If no memory is free, takes back the free buffers
  /// of caches before it fails.
  /// Cost: a lock; sometimes an extent of fresh memory. Errors: out_of_memory (detail: limit, MiB).
  Result<std::uint64_t> allocate(SizeClass cls);
  /// Sets the function that reclaims retired memory, more of it where it `insists`; it returns
  /// whether memory is or will soon be free. Set before the pool is used.
  void set_reclaim(std::function<bool(bool insists)> reclaim) { reclaim_ = std::move(reclaim); }
  /// As allocate(), but reclaims memory, several times if needed, when there is none. For rare
  /// allocations. Requires: the caller may do what the reclaiming function does.
  Result<std::uint64_t> allocate_or_reclaim(SizeClass cls);
  /// Takes a buffer back. Requires: allocated with this class; no reader relies on its reference
  /// any more. Cost: a lock, one line.
  void release(std::uint64_t offset, SizeClass cls);

  /// Returns wholly free units, kept for reuse, to the region.
  void trim();
  /// Takes back all free, unreserved buffers of caches, then trims.
  /// Cost: a heavy barrier for each cache that holds some. Requires: the caller uses no cache now.
  void recall();

  /// Exchanges reserved empty buffers for others of their class in the fullest units, so that they
  /// do not keep alive units that could be returned. Atomic with respect to other threads. Cost: a
  /// lock, all units of the class that have free buffers.
  /// Requires: allocated with this class, and no more than buffers_per_unit().
  void repack(SizeClass cls, std::span<std::uint64_t> offsets);

  /// Whether a buffer of this kind begins there and is in use under this generation: filled, and
  /// not released. For untrusted references from outside. Reads the pool's own table, and the
  /// header's line only if a buffer begins there.
  /// Thread: any; a caller that needs the answer to stay true must have exposed an epoch before.
  [[nodiscard]] bool is_buffer_begin(std::uint64_t offset, BufferKind kind,
                                     std::uint32_t generation) const;
  /// The generation under which a buffer of this kind that begins there is in use; 0: none.
  /// Otherwise as is_buffer_begin.
  [[nodiscard]] std::uint32_t generation_in_use(std::uint64_t offset, BufferKind kind) const;

  [[nodiscard]] ClassStats stats(SizeClass cls) const;
  /// Bytes taken from the region but not in use, here and in caches. They can serve only the
  /// classes for which they were cut, until a whole unit is free.
  [[nodiscard]] std::uint64_t free_bytes() const;
  [[nodiscard]] Region& region() const { return region_; }
  [[nodiscard]] std::byte* at(std::uint64_t offset) const { return region_.at(offset); }

  /// For tests: lets `n` acquisitions succeed and fails the next one, once, with out_of_memory. An
  /// acquisition is a call of allocate() or reserve(), of pool or cache, except an allocate() that
  /// a reservation covers. -1: off.
  void fail_after(std::int64_t n) {
    fail_for_good_.store(false, std::memory_order_relaxed);
    fail_after_.store(n, std::memory_order_relaxed);
  }
  /// For tests: as fail_after, but fails all later ones too, until fail_after() is called.
  void fail_from(std::int64_t n) {
    fail_for_good_.store(true, std::memory_order_relaxed);
    fail_after_.store(n, std::memory_order_relaxed);
  }
  /// Whether the first failure is still to come.
  [[nodiscard]] bool failure_pending() const {
    return fail_after_.load(std::memory_order_relaxed) >= 0;
  }

 private:
  friend class BufferCache;

  // Units are numbered by their first slab. 0 is none: the region's header lies there.
  using UnitIndex = std::uint32_t;
  static constexpr UnitIndex kNone = 0;

  // What a unit is: its class, and whether it is whole extents. 0: nothing begins here.
  static constexpr std::uint8_t kWhole = 0x80;

  /// Guarded by its class's lock; all zeros for a unit never used. `tag` is set once, `buffers` is
  /// written atomically, and `generation_first` does not change while the unit has memory: these
  /// are read without the lock.
  struct Unit {
    std::uint16_t* free_stack;       // indices of released buffers
    std::uint32_t free_count;        // on the stack
    std::uint32_t carved;            // buffers handed out at least once
    std::uint32_t buffers;           // 0: its memory has been returned to the region
    std::uint32_t generation_first;  // of buffers that are handed out first
    std::uint32_t generation_high;   // highest ever seen here
    UnitIndex previous;              // neighbours on the class's list
    UnitIndex next;
    std::uint8_t tag;  // class + 1, and kWhole
    [[nodiscard]] std::uint32_t available() const { return buffers - carved + free_count; }
  };

  struct alignas(64) Class {
    mutable std::mutex mutex;
    UnitIndex partial = kNone;  // list of units partly in use
    UnitIndex spare = kNone;    // at most one wholly free unit
    UnitIndex empty[2] = {};    // list of slabs, and of whole units, without memory
    std::uint32_t slabs = 0;    // with memory
    std::uint64_t buffers = 0;  // in all units
    std::uint64_t free = 0;     // on the stacks or not handed out yet
    // Allocated less released: without a cache, and by destroyed caches.
    std::atomic<std::int64_t> in_use{0};
  };

  /// An extent of slabs, and how many of them have their class.
  struct OpenExtent {
    std::uint64_t offset = 0;
    std::uint64_t used = kSlabsPerExtent;
  };

  /// Takes up to out.size() buffers, at least one; returns how many. Headers are not touched.
  [[nodiscard]] Result<std::uint32_t> take(SizeClass cls, std::span<std::uint64_t> out);
  /// Takes back buffers whose headers have been retired.
  void give(SizeClass cls, std::span<const std::uint64_t> offsets);
  /// As repack(), for buffers that count as free.
  void repack_free(SizeClass cls, std::span<std::uint64_t> offsets);
  /// Makes the header of a buffer about to be allocated as in I1.
  void prepare_header(std::uint64_t offset);
  /// Makes the header of a released buffer as in I3.
  void retire_header(std::uint64_t offset);
  /// Counts an acquisition; returns whether it has to fail.
  bool fails_now();

  void attach(BufferCache* cache);
  void detach(BufferCache* cache);

  std::uint32_t take_locked(Class& c, SizeClass cls, std::span<std::uint64_t> out);
  /// Takes a unit from the region, and buffers of it, in one critical section: a unit of which no
  /// buffer was taken would never become empty, and so never be returned. 0: no memory, even after
  /// trim().
  std::uint32_t grow(SizeClass cls, std::span<std::uint64_t> out);
  /// A unit with memory, cut for this class and on none of its lists; kNone: there is no memory.
  UnitIndex acquire(SizeClass cls);
  UnitIndex acquire(SizeClass cls, bool whole);
  UnitIndex acquire_fresh(SizeClass cls, bool whole);
  std::uint64_t take_slot(UnitIndex unit, SizeClass cls);
  [[nodiscard]] UnitIndex fullest_locked(const Class& c) const;
  /// Takes one buffer back; returns whether its unit is wholly free now and must be returned.
  bool give_locked(Class& c, std::uint64_t offset);
  /// Takes a wholly free unit from its class's numbers; the caller gives its memory back.
  void disown_locked(Class& c, UnitIndex unit);
  /// Disowned units on their way to give_unit(), linked by their `next`.
  void add_to(UnitIndex& emptied, UnitIndex unit);
  void give_units(Class& c, UnitIndex emptied);
  /// Gives the memory of a disowned unit back, and the unit to its class for later.
  void give_unit(Class& c, UnitIndex unit);
  void link(Class& c, UnitIndex unit);
  void unlink(Class& c, UnitIndex unit);

  [[nodiscard]] std::uint8_t tag_of(UnitIndex unit) const;
  void set_tag(UnitIndex unit, SizeClass cls, bool whole);
  /// The unit in which this byte lies. Requires: it lies in one, and of a run in the first extent.
  [[nodiscard]] UnitIndex unit_of(std::uint64_t offset) const;
  [[nodiscard]] SizeClass class_at(UnitIndex unit) const { return (tag_of(unit) & ~kWhole) - 1u; }
  [[nodiscard]] bool is_whole(UnitIndex unit) const { return (tag_of(unit) & kWhole) != 0; }
  [[nodiscard]] std::uint64_t first_buffer(UnitIndex unit) const;
  [[nodiscard]] std::uint64_t unit_bytes(UnitIndex unit) const;

  Region& region_;
  std::function<bool(bool)> reclaim_;
  LazyArray<Unit> units_;  // by offset / kSlabBytes
  std::array<Class, kClasses> classes_;
  std::mutex slabs_mutex_;  // guards open_; taken before the region's lock
  std::array<OpenExtent, kBufferKinds> open_;
  const bool asymmetric_;  // whether barriers are, between caches and recall()
  static constexpr std::int64_t kFailing = std::numeric_limits<std::int64_t>::min();
  std::atomic<std::int64_t> fail_after_{-1};  // kFailing: every acquisition fails
  std::atomic<bool> fail_for_good_{false};

  mutable std::mutex caches_mutex_;  // taken before a class's lock
  std::vector<BufferCache*> caches_;
};

}  // namespace espalier::memory

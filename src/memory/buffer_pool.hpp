// SPDX-License-Identifier: Apache-2.0
// Buffers of size classes inside a region: the memory of nodes and out-of-line values.
//
// Memory is taken in units (extent.hpp), each of which belongs to one class for as long as the pool
// lives and is cut into equal buffers; what goes back when a unit is empty is its memory. Each unit
// keeps its free buffers on a stack of its own, so that what was freed last, and is still in a
// processor's cache, comes back first, and so that a unit that becomes wholly free goes back
// without a search. All lists are in process memory: links inside a region that others can write
// could be made to point anywhere.
// Each thread goes through a BufferCache (buffer_cache.hpp), which keeps it from the locks.
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
// Where the heap has nothing for the pool's own lists, that is out_of_memory too; to give a buffer
// back needs none.
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

/// Numbers of one class, in buffers. Exact when no thread allocates or releases meanwhile.
struct ClassStats {
  std::uint64_t taken = 0;   // all that the units of the class were cut into
  std::uint64_t in_use = 0;  // allocated and not released
  std::uint64_t free = 0;    // in the pool and in caches
};

class BufferPool {
 public:
  /// Requires: the region stays where it is and outlives the pool.
  explicit BufferPool(Region& region);
  /// Gives all its memory back to the region. Requires: its caches are gone.
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

  /// Returns the offset of a free buffer. Its header is as I1 says, the rest holds anything. Who
  /// fills it leaves the generation as it is.
  /// Cost: a lock; sometimes an extent of fresh memory. Before it fails it takes back what caches
  /// hold. Errors: out_of_memory (detail: limit, MiB).
  Result<std::uint64_t> allocate(SizeClass cls);
  /// What frees memory that is held for others, more of it where it `insists`; whether there may be
  /// some now, or will be soon. Set before the pool is used.
  void set_reclaim(std::function<bool(bool insists)> reclaim) { reclaim_ = std::move(reclaim); }
  /// As allocate(), but has memory reclaimed, some times over, where there is none. For what is
  /// rarely allocated. Requires: the caller may do what the reclaiming function does.
  Result<std::uint64_t> allocate_or_reclaim(SizeClass cls);
  /// Takes a buffer back: no reader that holds its reference may count on it any longer.
  /// Cost: a lock, one line. Requires: allocated with this class.
  void release(std::uint64_t offset, SizeClass cls);

  /// Gives units that are wholly free, and kept for soon, back to the region.
  void trim();
  /// Takes back all free buffers that caches hold and that are not reserved, then trims.
  /// Cost: a heavy barrier for each cache that holds some. Requires: the caller uses no cache now.
  void recall();

  /// Exchanges buffers that hold nothing, but are put by for later, for others of their class that
  /// lie where most is in use: so that they keep no unit which could go back. No other thread can
  /// come between. Cost: a lock, all units of the class that have free buffers.
  /// Requires: allocated with this class, and no more than buffers_per_unit().
  void repack(SizeClass cls, std::span<std::uint64_t> offsets);

  /// Whether a buffer of this kind begins there and is in use under this generation: filled, and
  /// not released. For references that come from outside, which may say anything. The answer comes
  /// from the pool's own table and the header's line, which is read only if a buffer begins there.
  /// Thread: any; who needs the answer to hold must have exposed an epoch before.
  [[nodiscard]] bool is_buffer_begin(std::uint64_t offset, BufferKind kind,
                                     std::uint32_t generation) const;
  /// Under which generation a buffer of this kind that begins there is in use; 0: none is. The
  /// rest as is_buffer_begin.
  [[nodiscard]] std::uint32_t generation_in_use(std::uint64_t offset, BufferKind kind) const;

  [[nodiscard]] ClassStats stats(SizeClass cls) const;
  /// Bytes that are taken from the region and in no use, here and in caches: free for buffers of
  /// the classes for which they were cut, and for no others before a whole unit is free.
  [[nodiscard]] std::uint64_t free_bytes() const;
  [[nodiscard]] Region& region() const { return region_; }
  [[nodiscard]] std::byte* at(std::uint64_t offset) const { return region_.at(offset); }

  /// For tests: lets `n` acquisitions succeed and fails the one after them, once, with
  /// out_of_memory. An acquisition is a call of allocate() or reserve(), of pool or cache, except
  /// an allocate() that a reservation covers. -1: off.
  void fail_after(std::int64_t n) {
    fail_for_good_.store(false, std::memory_order_relaxed);
    fail_after_.store(n, std::memory_order_relaxed);
  }
  /// For tests: as fail_after, but fails all that come after them, until fail_after() is called.
  void fail_from(std::int64_t n) {
    fail_for_good_.store(true, std::memory_order_relaxed);
    fail_after_.store(n, std::memory_order_relaxed);
  }
  /// Whether the first failure is still to come: false after it came.
  [[nodiscard]] bool failure_pending() const {
    return fail_after_.load(std::memory_order_relaxed) >= 0;
  }

 private:
  friend class BufferCache;

  // Units are named by the number of the slab that they begin with. 0 is none: there lies the
  // region's header.
  using UnitIndex = std::uint32_t;
  static constexpr UnitIndex kNone = 0;

  // What a unit is: its class, and whether it is whole extents. 0: nothing begins here.
  static constexpr std::uint8_t kWhole = 0x80;

  /// Belongs to its class's lock; zeros are a unit that never was. `tag` is set once, `buffers` is
  /// written as an atomic, and `generation_first` does not change while there is memory: these are
  /// read without the lock.
  struct Unit {
    std::uint16_t* free_stack;       // indices of released buffers
    std::uint32_t free_count;        // on the stack
    std::uint32_t carved;            // buffers handed out at least once
    std::uint32_t buffers;           // 0: its memory is with the region
    std::uint32_t generation_first;  // of buffers that are handed out first
    std::uint32_t generation_high;   // highest ever seen here
    UnitIndex previous;              // neighbours on the class's list
    UnitIndex next;
    std::uint8_t tag;  // class + 1, and kWhole
    [[nodiscard]] std::uint32_t available() const { return buffers - carved + free_count; }
  };

  struct alignas(64) Class {
    mutable std::mutex mutex;
    UnitIndex partial = kNone;  // list of units with buffers to give, some in use
    UnitIndex spare = kNone;    // at most one unit that is wholly free
    UnitIndex empty[2] = {};    // list of slabs, and of whole units, without memory
    std::uint32_t slabs = 0;    // with memory
    std::uint64_t buffers = 0;  // in all units
    std::uint64_t free = 0;     // on the stacks or not handed out yet
    // Allocated less released: without a cache, and by caches that are gone.
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
  /// As repack(), of buffers that count as free.
  void repack_free(SizeClass cls, std::span<std::uint64_t> offsets);
  /// Makes the header of a buffer that is about to be handed out as I1 says.
  void prepare_header(std::uint64_t offset);
  /// Makes the header of a buffer that comes back as I3 says.
  void retire_header(std::uint64_t offset);
  /// Counts an acquisition; whether it has to fail.
  bool fails_now();

  void attach(BufferCache* cache);
  void detach(BufferCache* cache);

  std::uint32_t take_locked(Class& c, SizeClass cls, std::span<std::uint64_t> out);
  /// Takes a unit from the region, and buffers of it, in one critical section: a unit of which
  /// nothing was ever taken is never emptied, and so never given back. 0: there is none, even after
  /// trim().
  std::uint32_t grow(SizeClass cls, std::span<std::uint64_t> out);
  /// A unit with memory, cut for this class and on none of its lists; kNone: there is no memory.
  UnitIndex acquire(SizeClass cls);
  UnitIndex acquire(SizeClass cls, bool whole);
  UnitIndex acquire_fresh(SizeClass cls, bool whole);
  std::uint64_t take_slot(UnitIndex unit, SizeClass cls);
  [[nodiscard]] UnitIndex fullest_locked(const Class& c) const;
  /// Takes one buffer back; whether its unit is wholly free now and has to go to the region.
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

// SPDX-License-Identifier: Apache-2.0
// Buffers of size classes inside a region: the memory of nodes and out-of-line values.
//
// An extent belongs to one class at a time and is cut into equal buffers. Each extent keeps its
// free buffers on a stack of its own, so that what was freed last, and is still in a processor's
// cache, comes back first, and so that an extent that becomes wholly free goes back without a
// search. All lists are in process memory: links inside a region that others can write could be
// made to point anywhere.
// Each thread goes through a BufferCache, which keeps it from the locks.
//
// A buffer starts with wire::BufferHeader, and the pool keeps what references rely on:
// I1. A buffer that allocate() returns has superseded == 0 and a generation that no earlier buffer
//     at this offset, of whatever class, had (until the 28 bits that references carry wrap).
// I2. The generation's low 28 bits are never 0.
// I3. retire_header() stores superseded = 0 before it moves the generation on, and both before the
//     buffer can be allocated again: a reader with an old reference sees 0, the new generation, or
//     what it expects from before.
// I4. An extent remembers the highest generation that it ever saw, beyond being given back, and
//     hands out only higher ones afterwards.
// I5. Buffers in use + free (here and in caches) = all that the extents of the class were cut into.
//
// Thread: BufferPool any; BufferCache one at a time. Locks: caches, then one class, then the
// region's; never two classes at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "espalier/error.hpp"
#include "memory/region.hpp"
#include "memory/size_class.hpp"

namespace espalier::memory {

class BufferCache;

/// Numbers of one class, in buffers. Exact when no thread allocates or releases meanwhile.
struct ClassStats {
  std::uint64_t taken = 0;   // all that the extents of the class were cut into
  std::uint64_t in_use = 0;  // allocated and not released
  std::uint64_t free = 0;    // in the pool and in caches
};

class BufferPool {
 public:
  /// Requires: the region stays where it is and outlives the pool.
  explicit BufferPool(Region& region);
  /// Gives all its extents back to the region. Requires: its caches are gone.
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// The smallest class that holds so many bytes; kClasses if none does.
  [[nodiscard]] static constexpr SizeClass class_of(std::uint64_t bytes) {
    return memory::class_of(bytes);
  }
  [[nodiscard]] static constexpr std::uint64_t class_bytes(SizeClass cls) {
    return memory::class_bytes(cls);
  }

  /// Returns the offset of a free buffer. Its header is as I1 says, the rest holds anything. Who
  /// fills it leaves the generation as it is.
  /// Cost: a lock; sometimes an extent of fresh memory. Errors: out_of_memory (detail: limit, MiB).
  Result<std::uint64_t> allocate(SizeClass cls);
  /// Takes a buffer back: no reader that holds its reference may count on it any longer.
  /// Cost: a lock, one line. Requires: allocated with this class.
  void release(std::uint64_t offset, SizeClass cls);

  /// Gives extents that are wholly free, and kept for soon, back to the region.
  void trim();

  [[nodiscard]] ClassStats stats(SizeClass cls) const;
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

  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// One extent, or the first of a run that carries one large buffer. Belongs to its class's lock
  /// while taken; `generation_first` does not change then.
  struct Extent {
    std::unique_ptr<std::uint16_t[]> free_stack;  // indices of released buffers
    std::uint32_t free_count = 0;                 // on the stack
    std::uint32_t carved = 0;                     // buffers handed out at least once
    std::uint32_t buffers = 0;                    // 0: not taken by a class
    SizeClass cls = 0;
    std::uint32_t generation_first = 0;           // of buffers that are handed out first
    std::uint32_t generation_high = 0;            // highest ever seen here
    std::uint32_t previous = kNone;               // neighbours on the class's list
    std::uint32_t next = kNone;
    [[nodiscard]] std::uint32_t available() const { return buffers - carved + free_count; }
  };

  struct alignas(64) Class {
    mutable std::mutex mutex;
    std::uint32_t partial = kNone;  // list of extents with buffers to give, some in use
    std::uint32_t spare = kNone;    // at most one extent that is wholly free
    std::uint64_t buffers = 0;      // in all extents
    std::uint64_t free = 0;         // on the stacks or not handed out yet
    // Allocated less released: without a cache, and by caches that are gone.
    std::atomic<std::int64_t> in_use{0};
  };

  /// Takes up to out.size() buffers, at least one; returns how many. Headers are not touched.
  [[nodiscard]] Result<std::uint32_t> take(SizeClass cls, std::span<std::uint64_t> out);
  /// Takes back buffers whose headers have been retired.
  void give(SizeClass cls, std::span<const std::uint64_t> offsets);
  /// Makes the header of a buffer that is about to be handed out as I1 says.
  void prepare_header(std::uint64_t offset);
  /// Makes the header of a buffer that comes back as I3 says.
  void retire_header(std::uint64_t offset);
  /// Counts an acquisition; whether it has to fail.
  bool fails_now();

  void attach(BufferCache* cache);
  void detach(BufferCache* cache);

  std::uint32_t take_locked(Class& c, SizeClass cls, std::span<std::uint64_t> out);
  /// Takes an extent (or run) from the region; false: there is none, even after trim().
  bool grow(SizeClass cls);
  /// Takes one buffer back; whether its extent is wholly free now and has to go to the region.
  bool give_locked(Class& c, std::uint64_t offset);
  /// Takes a wholly free extent from its class; the caller gives it to the region.
  void disown_locked(Class& c, std::uint32_t extent);
  void link(Class& c, std::uint32_t extent);
  void unlink(Class& c, std::uint32_t extent);

  Region& region_;
  std::vector<Extent> extents_;  // by offset / kExtentBytes
  std::array<Class, kClasses> classes_;
  static constexpr std::int64_t kFailing = std::numeric_limits<std::int64_t>::min();
  std::atomic<std::int64_t> fail_after_{-1};  // kFailing: every acquisition fails
  std::atomic<bool> fail_for_good_{false};

  mutable std::mutex caches_mutex_;  // taken before a class's lock
  std::vector<BufferCache*> caches_;
};

/// One thread's front of a pool: buffers come and go without a lock, in most cases.
///
/// Per class a stack (what was freed last comes back first) of at most kCachedBuffers buffers or
/// kCachedBytes, refilled and flushed by halves, so that a thread which allocates and frees by
/// turns at the edge does not go to the pool each time. Buffers of a cache count as free. A writer
/// that must not fail once it holds a version reserves first (DESIGN §2.1 rule 11).
/// Thread: one at a time; the pool reads the counters from others.
class BufferCache {
 public:
  static constexpr std::uint32_t kCachedBuffers = 64;
  static constexpr std::uint64_t kCachedBytes = std::uint64_t{1} << 20;

  /// Requires: the pool outlives the cache.
  explicit BufferCache(BufferPool& pool);
  /// Gives all buffers back to the pool.
  ~BufferCache();
  BufferCache(const BufferCache&) = delete;
  BufferCache& operator=(const BufferCache&) = delete;

  /// As BufferPool::allocate. Cost: the buffer's first line; one in about 32 takes a lock.
  Result<std::uint64_t> allocate(SizeClass cls);
  /// As BufferPool::release; from any thread's cache, not only the one that allocated it.
  void release(std::uint64_t offset, SizeClass cls);

  /// Ensures that the next `n` calls of allocate(cls) succeed. A later call for the same class
  /// replaces the reservation; 0 drops it. Errors: out_of_memory (the reservation is as before).
  Result<void> reserve(SizeClass cls, std::uint32_t n);
  /// What is left of the reservation.
  [[nodiscard]] std::uint32_t reserved(SizeClass cls) const { return bins_[cls].reserved; }

  /// Gives all buffers that are not reserved back to the pool.
  void flush();

  [[nodiscard]] BufferPool& pool() const { return pool_; }

 private:
  friend class BufferPool;

  struct Bin {
    std::vector<std::uint64_t> buffers;   // offsets, last freed last; headers are retired
    std::uint32_t reserved = 0;           // <= buffers.size()
    std::atomic<std::uint64_t> free{0};   // buffers.size(), for other threads
    std::atomic<std::int64_t> in_use{0};  // allocated less released through this cache
  };

  [[nodiscard]] static constexpr std::uint32_t capacity(SizeClass cls) {
    const std::uint64_t by_bytes = kCachedBytes / class_bytes(cls);
    return by_bytes < kCachedBuffers ? static_cast<std::uint32_t>(by_bytes) : kCachedBuffers;
  }
  /// Brings the stack to at least one buffer, half full if it can.
  Result<void> refill(SizeClass cls, Bin& bin);
  /// Gives the coldest buffers back until at most `keep` (and what is reserved) remain.
  void shrink(SizeClass cls, Bin& bin, std::uint32_t keep);
  static void count(Bin& bin, std::int64_t in_use_change);

  BufferPool& pool_;
  std::array<Bin, kClasses> bins_;
};

}  // namespace espalier::memory

// SPDX-License-Identifier: Apache-2.0
// Buffers of size classes inside a region: the memory of nodes and out-of-line values.
//
// An extent belongs to one class at a time and is cut into equal buffers. Each extent keeps its free
// buffers on a stack of its own, so that what was freed last, and is still in cache, comes back
// first, and so that an extent that becomes wholly free can go back without a search. All lists are
// in process memory: a region that others can write holds nothing that the allocator believes.
// How the fast path avoids the locks: memory/buffer_cache.hpp.
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
// Thread: all calls from any thread. Locks: one per class; below them only the region's; never two
// classes at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
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

  /// Returns the offset of a free buffer. Its header is as I1 says; the rest holds anything.
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
  void fail_after(std::int64_t n) { fail_after_.store(n, std::memory_order_relaxed); }
  /// Whether a failure is still to come: false after it came.
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
    std::int64_t in_use = 0;        // allocated less released without a cache, and by caches gone
  };

  /// Takes up to out.size() buffers, at least one; returns how many. Headers are not touched.
  Result<std::uint32_t> take(SizeClass cls, std::span<std::uint64_t> out);
  /// Takes back buffers whose headers have been retired.
  void give(SizeClass cls, std::span<const std::uint64_t> offsets);
  /// Makes the header of a buffer that is about to be handed out as I1 says.
  void prepare_header(std::uint64_t offset);
  /// Makes the header of a buffer that comes back as I3 says.
  void retire_header(std::uint64_t offset);
  /// Counts an acquisition; whether it has to fail.
  bool fails_now();
  [[nodiscard]] std::unexpected<Error> out_of_memory() const;

  void attach(BufferCache* cache);
  void detach(BufferCache* cache);

  std::uint32_t take_locked(Class& c, SizeClass cls, std::span<std::uint64_t> out);
  bool grow(SizeClass cls);
  void give_back_locked(Class& c, SizeClass cls, std::uint32_t extent);
  void link(Class& c, std::uint32_t extent);
  void unlink(Class& c, std::uint32_t extent);

  Region& region_;
  std::vector<Extent> extents_;  // by offset / kExtentBytes
  std::array<Class, kClasses> classes_;
  std::atomic<std::int64_t> fail_after_{-1};

  mutable std::mutex caches_mutex_;  // taken before a class's lock
  std::vector<BufferCache*> caches_;
};

}  // namespace espalier::memory

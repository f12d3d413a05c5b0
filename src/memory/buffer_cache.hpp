// SPDX-License-Identifier: Apache-2.0
// A thread's cache of free buffers of a pool (buffer_pool.hpp), which avoids the pool's locks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/barrier.hpp"
#include "espalier/error.hpp"
#include "memory/size_class.hpp"

namespace espalier::memory {

class BufferPool;

/// A thread's cache of free buffers: most allocations and releases take no lock.
///
/// For each class it keeps a LIFO stack of at most kCachedBuffers buffers or kCachedBytes, refilled
/// and flushed by halves, so that alternate allocation and release at the edge does not go to the
/// pool each time. Cached buffers count as free. A writer that must not fail once it holds a
/// version reserves first (DESIGN §2.1 rule 11). When memory is short, another thread takes back
/// unreserved buffers by BufferPool::recall(): the owner marks its operations `busy`, by an
/// asymmetric barrier that costs it nothing.
/// Thread: one at a time; the pool reads the counters from other threads.
class BufferCache {
 public:
  static constexpr std::uint32_t kCachedBuffers = 64;
  static constexpr std::uint64_t kCachedBytes = std::uint64_t{1} << 20;

  /// Requires: the pool outlives the cache. Throws std::bad_alloc.
  explicit BufferCache(BufferPool& pool);
  /// Returns all buffers to the pool.
  ~BufferCache();
  BufferCache(const BufferCache&) = delete;
  BufferCache& operator=(const BufferCache&) = delete;

  /// As BufferPool::allocate, except that the caller decides when to recall() buffers of other
  /// caches. Cost: the buffer's first line; one in about 32 takes a lock.
  Result<std::uint64_t> allocate(SizeClass cls);
  /// As BufferPool::release. A buffer may be released through any thread's cache.
  void release(std::uint64_t offset, SizeClass cls);

  /// Ensures that the next `n` calls of allocate(cls) succeed. A later call for the same class
  /// replaces the reservation; 0 drops it. Errors: out_of_memory (the reservation is as before).
  Result<void> reserve(SizeClass cls, std::uint32_t n);
  /// Remaining reservation.
  [[nodiscard]] std::uint32_t reserved(SizeClass cls) const { return bins_[cls].reserved; }

  /// Returns all unreserved buffers to the pool.
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

  /// Marks the owner as busy: recall() waits for its end, or the owner for the end of recall().
  class Work {
   public:
    explicit Work(BufferCache& cache) : cache_(cache) {
      cache.busy_.store(true, std::memory_order_relaxed);
      base::frequent_barrier(cache.asymmetric_);
      if (cache.recalled_.load(std::memory_order_acquire)) [[unlikely]]
        cache.wait_for_recall();
    }
    ~Work() { cache_.busy_.store(false, std::memory_order_release); }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    BufferCache& cache_;
  };

  [[nodiscard]] static constexpr std::uint32_t capacity(SizeClass cls) {
    const std::uint64_t by_bytes = kCachedBytes / class_bytes(cls);
    return by_bytes < kCachedBuffers ? static_cast<std::uint32_t>(by_bytes) : kCachedBuffers;
  }
  /// Fills the stack with at least one buffer, half full if possible.
  Result<void> refill(SizeClass cls, Bin& bin);
  /// Returns the coldest buffers until at most `keep` (and the reserved ones) remain.
  void shrink(SizeClass cls, Bin& bin, std::uint32_t keep);
  static void count(Bin& bin, std::int64_t in_use_change);
  std::uint64_t pop(Bin& bin);
  /// Fills the stack to at least `n` buffers. Errors: out_of_memory (nothing was changed).
  Result<void> fill(SizeClass cls, Bin& bin, std::uint32_t n);
  /// Returns unreserved buffers, on another thread than the owner's.
  void recall();
  [[gnu::noinline]] void wait_for_recall();

  BufferPool& pool_;
  const bool asymmetric_;
  std::atomic<bool> busy_{false};
  std::atomic<bool> recalled_{false};
  std::array<Bin, kClasses> bins_;
};

}  // namespace espalier::memory

// SPDX-License-Identifier: Apache-2.0
// One thread's front of a BufferPool: buffers come and go without a lock, in most cases.
//
// Per class a stack (what was freed last comes back first) of at most kCachedBuffers buffers or
// kCachedBytes, refilled and flushed by halves, so that a thread which allocates and frees by turns
// at the edge does not go to the pool each time. Buffers of a cache count as free.
//
// A writer that must not fail once it holds a version reserves first (DESIGN §2.1 rule 11).
//
// Thread: one at a time; the pool reads the counters from others.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "memory/buffer_pool.hpp"

namespace espalier::memory {

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
  /// replaces the reservation; 0 drops it. Errors: out_of_memory; then the reservation is as before.
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

// SPDX-License-Identifier: Apache-2.0
#include "memory/buffer_cache.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <thread>

#include "base/assert.hpp"
#include "base/try_reserve.hpp"
#include "memory/buffer_pool.hpp"

namespace espalier::memory {

BufferCache::BufferCache(BufferPool& pool) : pool_(pool), asymmetric_(pool.asymmetric_) {
  pool_.attach(this);
}

BufferCache::~BufferCache() {
  {
    const Work work(*this);
    for (Bin& bin : bins_) bin.reserved = 0;
  }
  flush();
  pool_.detach(this);
}

Result<std::uint64_t> BufferCache::allocate(SizeClass cls) {
  ESPALIER_ASSERT(cls < kClasses);
  Bin& bin = bins_[cls];
  const Work work(*this);
  if (bin.reserved > 0) {
    --bin.reserved;
    return pop(bin);
  }
  if (pool_.fails_now()) [[unlikely]]
    return pool_.region_.out_of_memory();
  if (bin.buffers.empty()) {
    if (const auto filled = refill(cls, bin); !filled) return std::unexpected(filled.error());
  }
  return pop(bin);
}

std::uint64_t BufferCache::pop(Bin& bin) {
  const std::uint64_t offset = bin.buffers.back();
  bin.buffers.pop_back();
  count(bin, 1);
  pool_.prepare_header(offset);
  return offset;
}

void BufferCache::release(std::uint64_t offset, SizeClass cls) {
  ESPALIER_ASSERT(cls < kClasses);
  Bin& bin = bins_[cls];
  pool_.retire_header(offset);
  const Work work(*this);
  if (!base::try_reserve(bin.buffers, 1)) {  // no room to keep it here
    count(bin, -1);
    return pool_.give(cls, {&offset, 1});
  }
  bin.buffers.push_back(offset);
  count(bin, -1);
  if (bin.buffers.size() > bin.reserved + capacity(cls)) shrink(cls, bin, capacity(cls) / 2);
}

Result<void> BufferCache::reserve(SizeClass cls, std::uint32_t n) {
  ESPALIER_ASSERT(cls < kClasses);
  Bin& bin = bins_[cls];
  if (n > 0 && pool_.fails_now()) [[unlikely]]
    return pool_.region_.out_of_memory();
  const Work work(*this);
  if (const auto filled = fill(cls, bin, n); !filled) return filled;
  bin.reserved = n;
  return {};
}

Result<void> BufferCache::fill(SizeClass cls, Bin& bin, std::uint32_t n) {
  if (n <= bin.buffers.size()) return {};
  const std::size_t missing = n - bin.buffers.size();
  if (!base::try_reserve(bin.buffers, missing)) return pool_.region_.out_of_memory();
  // Below what lies there, which is hotter; the pool's hottest comes first.
  bin.buffers.insert(bin.buffers.begin(), missing, 0);
  const auto fresh = std::span(bin.buffers).first(missing);
  for (std::size_t have = 0; have < missing;) {
    const auto taken = pool_.take(cls, fresh.subspan(have));
    if (!taken) {
      pool_.give(cls, fresh.first(have));
      bin.buffers.erase(bin.buffers.begin(),
                        std::next(bin.buffers.begin(), static_cast<std::ptrdiff_t>(missing)));
      return std::unexpected(taken.error());
    }
    have += *taken;
  }
  std::ranges::reverse(fresh);
  count(bin, 0);
  return {};
}

void BufferCache::flush() {
  const Work work(*this);
  for (SizeClass cls = 0; cls < kClasses; ++cls) shrink(cls, bins_[cls], 0);
}

void BufferCache::recall() {
  const bool any = std::any_of(bins_.begin(), bins_.end(), [](const Bin& bin) {
    return bin.free.load(std::memory_order_relaxed) != 0;
  });
  if (!any) return;
  recalled_.store(true, std::memory_order_relaxed);
  base::rare_barrier(asymmetric_);
  while (busy_.load(std::memory_order_acquire)) std::this_thread::yield();
  for (SizeClass cls = 0; cls < kClasses; ++cls) {
    Bin& bin = bins_[cls];
    shrink(cls, bin, 0);
    if (!bin.buffers.empty() && bin.buffers.size() <= buffers_per_unit(cls)) {
      pool_.repack_free(cls, bin.buffers);
    }
  }
  recalled_.store(false, std::memory_order_release);
}

void BufferCache::wait_for_recall() {
  while (recalled_.load(std::memory_order_acquire)) {
    busy_.store(false, std::memory_order_release);
    while (recalled_.load(std::memory_order_acquire)) std::this_thread::yield();
    busy_.store(true, std::memory_order_relaxed);
    base::frequent_barrier(asymmetric_);
  }
}

Result<void> BufferCache::refill(SizeClass cls, Bin& bin) {
  std::array<std::uint64_t, kCachedBuffers / 2> fresh;
  const std::uint32_t want = std::max(capacity(cls) / 2, 1u);
  if (!base::try_reserve(bin.buffers, want)) return pool_.region_.out_of_memory();
  const auto taken = pool_.take(cls, std::span(fresh).first(want));
  if (!taken) return std::unexpected(taken.error());
  const auto filled = std::span(fresh).first(*taken);
  bin.buffers.assign(filled.rbegin(), filled.rend());
  count(bin, 0);
  return {};
}

void BufferCache::shrink(SizeClass cls, Bin& bin, std::uint32_t keep) {
  const std::size_t stay = std::max(keep, bin.reserved);
  while (bin.buffers.size() > stay) {
    std::array<std::uint64_t, 2 * kCachedBuffers> coldest;
    const std::size_t go = std::min(bin.buffers.size() - stay, coldest.size());
    // Out of the stack first, so that no moment counts a buffer twice.
    const auto coldest_end = std::next(bin.buffers.begin(), static_cast<std::ptrdiff_t>(go));
    std::copy(bin.buffers.begin(), coldest_end, coldest.begin());
    bin.buffers.erase(bin.buffers.begin(), coldest_end);
    count(bin, 0);
    pool_.give(cls, std::span(coldest).first(go));
  }
}

void BufferCache::count(Bin& bin, std::int64_t in_use_change) {
  // The owner alone writes: a load and a store are enough, and cheaper than an atomic addition.
  bin.free.store(bin.buffers.size(), std::memory_order_relaxed);
  if (in_use_change == 0) return;
  bin.in_use.store(bin.in_use.load(std::memory_order_relaxed) + in_use_change,
                   std::memory_order_relaxed);
}

}  // namespace espalier::memory

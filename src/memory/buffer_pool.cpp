// SPDX-License-Identifier: Apache-2.0
#include "memory/buffer_pool.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/assert.hpp"
#include "base/barrier.hpp"
#include "memory/extent.hpp"
#include "wire/ref.hpp"

namespace espalier::memory {
namespace {

constexpr std::uint32_t extents_of(SizeClass cls) {
  return cls < kSmallClasses ? 1 : static_cast<std::uint32_t>(class_bytes(cls) / kExtentBytes);
}

constexpr std::uint32_t extent_of(std::uint64_t offset) {
  return static_cast<std::uint32_t>(offset / kExtentBytes);
}

constexpr std::uint64_t offset_of(std::uint32_t extent) { return extent * kExtentBytes; }

/// The generation after this one; its low 28 bits are never 0.
constexpr std::uint32_t next_generation(std::uint32_t generation) {
  const std::uint32_t next = generation + 1;
  return (next & wire::kGenerationMask) == 0 ? next + 1 : next;
}

/// The later of two generations on the circle of 32 bits.
constexpr std::uint32_t later(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(b - a) > 0 ? b : a;
}

std::atomic_ref<std::uint32_t> generation_at(std::byte* buffer) {
  return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(
      buffer + offsetof(wire::BufferHeader, generation)));
}

std::atomic_ref<std::uint64_t> superseded_at(std::byte* buffer) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(
      buffer + offsetof(wire::BufferHeader, superseded)));
}

}  // namespace

BufferPool::BufferPool(Region& region)
    : region_(region), extents_(region.bytes() / kExtentBytes) {}

BufferPool::~BufferPool() {
  ESPALIER_ASSERT(caches_.empty());
  for (std::uint32_t i = 0; i < extents_.size(); ++i) {
    if (extents_[i].buffers > 0) region_.give(offset_of(i), extents_of(extents_[i].cls));
  }
}

Result<std::uint64_t> BufferPool::allocate(SizeClass cls) {
  ESPALIER_ASSERT(cls < kClasses);
  if (fails_now()) return region_.out_of_memory();
  std::uint64_t offset = 0;
  const auto taken = take(cls, {&offset, 1});
  if (!taken) return std::unexpected(taken.error());
  prepare_header(offset);
  classes_[cls].in_use.fetch_add(1, std::memory_order_relaxed);
  return offset;
}

void BufferPool::release(std::uint64_t offset, SizeClass cls) {
  ESPALIER_ASSERT(cls < kClasses);
  retire_header(offset);
  classes_[cls].in_use.fetch_sub(1, std::memory_order_relaxed);
  give(cls, {&offset, 1});
}

void BufferPool::trim() {
  for (SizeClass cls = 0; cls < kClasses; ++cls) {
    Class& c = classes_[cls];
    std::uint32_t extent = kNone;
    {
      const std::lock_guard lock(c.mutex);
      extent = std::exchange(c.spare, kNone);
      if (extent != kNone) disown_locked(c, extent);
    }
    if (extent != kNone) region_.give(offset_of(extent), extents_of(cls));
  }
}

ClassStats BufferPool::stats(SizeClass cls) const {
  const std::lock_guard caches_lock(caches_mutex_);
  const Class& c = classes_[cls];
  const std::lock_guard lock(c.mutex);
  std::int64_t in_use = c.in_use.load(std::memory_order_relaxed);
  std::uint64_t free = c.free;
  for (const BufferCache* cache : caches_) {
    in_use += cache->bins_[cls].in_use.load(std::memory_order_relaxed);
    free += cache->bins_[cls].free.load(std::memory_order_relaxed);
  }
  // Counters of running threads are read at different moments and may even be below 0 together.
  return {c.buffers, static_cast<std::uint64_t>(std::max<std::int64_t>(in_use, 0)), free};
}

Result<std::uint32_t> BufferPool::take(SizeClass cls, std::span<std::uint64_t> out) {
  Class& c = classes_[cls];
  do {
    const std::lock_guard lock(c.mutex);
    if (const std::uint32_t n = take_locked(c, cls, out); n > 0) return n;
  } while (grow(cls));
  return region_.out_of_memory();
}

std::uint32_t BufferPool::take_locked(Class& c, SizeClass cls, std::span<std::uint64_t> out) {
  std::uint32_t n = 0;
  while (n < out.size()) {
    if (c.partial == kNone) {
      if (c.spare == kNone) break;
      link(c, std::exchange(c.spare, kNone));
    }
    const std::uint32_t index = c.partial;
    Extent& e = extents_[index];
    for (; n < out.size() && e.available() > 0; ++n) {
      const std::uint32_t slot = e.free_count > 0 ? e.free_stack[--e.free_count] : e.carved++;
      out[n] = first_buffer_of(index, cls) + slot * class_bytes(cls);
    }
    if (e.available() == 0) unlink(c, index);
  }
  c.free -= n;
  return n;
}

bool BufferPool::grow(SizeClass cls) {
  const std::uint32_t run = extents_of(cls);
  auto offset = region_.take(run);
  if (!offset) {
    trim();
    offset = region_.take(run);
    if (!offset) return false;
  }
  const std::uint32_t first = extent_of(*offset);
  std::uint32_t high = extents_[first].generation_high;
  for (std::uint32_t i = 1; i < run; ++i) high = later(high, extents_[first + i].generation_high);

  Class& c = classes_[cls];
  const std::lock_guard lock(c.mutex);
  Extent& e = extents_[first];
  e.buffers = buffers_per_extent(cls);
  e.cls = cls;
  e.free_stack = std::make_unique_for_overwrite<std::uint16_t[]>(e.buffers);
  e.free_count = 0;
  e.carved = 0;
  e.generation_first = next_generation(high);
  e.generation_high = e.generation_first;
  c.buffers += e.buffers;
  c.free += e.buffers;
  link(c, first);
  return true;
}

void BufferPool::give(SizeClass cls, std::span<const std::uint64_t> offsets) {
  Class& c = classes_[cls];
  std::vector<std::uint32_t> emptied;
  {
    const std::lock_guard lock(c.mutex);
    for (const std::uint64_t offset : offsets) {
      ESPALIER_ASSERT(extents_[extent_of(offset)].cls == cls);
      if (give_locked(c, offset)) emptied.push_back(extent_of(offset));
    }
  }
  // Giving pages back takes long: not under the lock.
  for (const std::uint32_t extent : emptied) region_.give(offset_of(extent), extents_of(cls));
}

bool BufferPool::give_locked(Class& c, std::uint64_t offset) {
  const std::uint32_t index = extent_of(offset);
  Extent& e = extents_[index];
  ESPALIER_ASSERT(e.buffers > 0 && e.free_count < e.carved);  // else it was released twice
  const std::uint64_t in_extent = offset - first_buffer_of(index, e.cls);
  ESPALIER_ASSERT(in_extent % class_bytes(e.cls) == 0);
  const std::uint32_t generation =
      generation_at(region_.at(offset)).load(std::memory_order_relaxed);
  if (generation != 0) e.generation_high = later(e.generation_high, generation);
  if (e.available() == 0) link(c, index);
  const std::uint64_t slot = in_extent / class_bytes(e.cls);
  e.free_stack[e.free_count++] = static_cast<std::uint16_t>(slot);
  ++c.free;
  if (e.free_count < e.carved) return false;
  unlink(c, index);
  if (c.spare == kNone && e.cls < kSmallClasses) {
    c.spare = index;
    return false;
  }
  disown_locked(c, index);
  return true;
}

void BufferPool::disown_locked(Class& c, std::uint32_t extent) {
  Extent& e = extents_[extent];
  c.buffers -= e.buffers;
  c.free -= e.buffers;
  // What comes to lie anywhere in the run starts above.
  for (std::uint32_t i = 1; i < extents_of(e.cls); ++i) {
    extents_[extent + i].generation_high = e.generation_high;
  }
  e.buffers = 0;
  e.free_stack.reset();
}

void BufferPool::prepare_header(std::uint64_t offset) {
  // Zeros: never used since the extent was taken. superseded is 0 in both cases.
  const auto generation = generation_at(region_.at(offset));
  if (generation.load(std::memory_order_relaxed) == 0) {
    generation.store(extents_[extent_of(offset)].generation_first, std::memory_order_relaxed);
  }
}

void BufferPool::retire_header(std::uint64_t offset) {
  std::byte* const buffer = region_.at(offset);
  superseded_at(buffer).store(0, std::memory_order_relaxed);
  const auto generation = generation_at(buffer);
  generation.store(next_generation(generation.load(std::memory_order_relaxed)),
                   std::memory_order_release);
  // What the next owner writes must not become visible before the new generation.
  base::release_fence();
}

bool BufferPool::fails_now() {
  const std::int64_t left = fail_after_.load(std::memory_order_relaxed);
  if (left < 0) [[likely]] return left == kFailing;
  if (fail_after_.fetch_sub(1, std::memory_order_relaxed) != 0) return false;
  if (fail_for_good_.load(std::memory_order_relaxed)) {
    fail_after_.store(kFailing, std::memory_order_relaxed);
  }
  return true;
}

void BufferPool::attach(BufferCache* cache) {
  const std::lock_guard lock(caches_mutex_);
  caches_.push_back(cache);
}

void BufferPool::detach(BufferCache* cache) {
  const std::lock_guard lock(caches_mutex_);
  for (SizeClass cls = 0; cls < kClasses; ++cls) {
    classes_[cls].in_use.fetch_add(cache->bins_[cls].in_use.load(std::memory_order_relaxed),
                                   std::memory_order_relaxed);
  }
  std::erase(caches_, cache);
}

void BufferPool::link(Class& c, std::uint32_t extent) {
  Extent& e = extents_[extent];
  e.previous = kNone;
  e.next = c.partial;
  if (c.partial != kNone) extents_[c.partial].previous = extent;
  c.partial = extent;
}

void BufferPool::unlink(Class& c, std::uint32_t extent) {
  const Extent& e = extents_[extent];
  if (e.previous != kNone) {
    extents_[e.previous].next = e.next;
  } else {
    c.partial = e.next;
  }
  if (e.next != kNone) extents_[e.next].previous = e.previous;
}

}  // namespace espalier::memory

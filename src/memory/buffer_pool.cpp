// SPDX-License-Identifier: Apache-2.0
#include "memory/buffer_pool.hpp"

#include <algorithm>
#include <cstddef>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/barrier.hpp"
#include "memory/buffer_cache.hpp"
#include "memory/extent.hpp"
#include "memory/generation.hpp"
#include "wire/ref.hpp"

namespace espalier::memory {
namespace {

/// The later of two generations on the circle of 32 bits.
constexpr std::uint32_t later(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(b - a) > 0 ? b : a;
}

std::atomic_ref<std::uint32_t> generation_at(std::byte* buffer) {
  return std::atomic_ref(
      *reinterpret_cast<std::uint32_t*>(buffer + offsetof(wire::BufferHeader, generation)));
}

std::atomic_ref<std::uint64_t> superseded_at(std::byte* buffer) {
  return std::atomic_ref(
      *reinterpret_cast<std::uint64_t*>(buffer + offsetof(wire::BufferHeader, superseded)));
}

}  // namespace

BufferPool::BufferPool(Region& region)
    : region_(region),
      units_(region.bytes() / kSlabBytes),
      asymmetric_(base::register_asymmetric_barriers()) {}

BufferPool::~BufferPool() {
  ESPALIER_ASSERT(caches_.empty());
  const auto end = static_cast<UnitIndex>(region_.end_offset() / kSlabBytes);
  for (UnitIndex unit = kNone + 1; unit < end; ++unit) {
    if (units_[unit].buffers == 0) continue;
    delete[] units_[unit].free_stack;
    region_.give(unit * kSlabBytes, unit_bytes(unit));
  }
}

Result<std::uint64_t> BufferPool::allocate(SizeClass cls) {
  ESPALIER_ASSERT(cls < kClasses);
  if (fails_now()) return region_.out_of_memory();
  std::uint64_t offset = 0;
  auto taken = take(cls, {&offset, 1});
  if (!taken) {
    recall();
    taken = take(cls, {&offset, 1});
  }
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
  for (Class& c : classes_) {
    UnitIndex unit = kNone;
    {
      const std::lock_guard lock(c.mutex);
      unit = std::exchange(c.spare, kNone);
      if (unit != kNone) disown_locked(c, unit);
    }
    if (unit != kNone) give_unit(c, unit);
  }
}

void BufferPool::recall() {
  {
    const std::lock_guard lock(caches_mutex_);
    for (BufferCache* cache : caches_) cache->recall();
  }
  trim();
}

void BufferPool::repack(SizeClass cls, std::span<std::uint64_t> offsets) {
  for (const std::uint64_t offset : offsets) retire_header(offset);
  repack_free(cls, offsets);
  for (const std::uint64_t offset : offsets) prepare_header(offset);
}

void BufferPool::repack_free(SizeClass cls, std::span<std::uint64_t> offsets) {
  if (class_bytes(cls) >= kExtentBytes) return;  // each is a unit of its own
  ESPALIER_ASSERT(offsets.size() <= buffers_per_unit(cls));
  Class& c = classes_[cls];
  UnitIndex emptied = kNone;
  {
    const std::lock_guard lock(c.mutex);
    for (const std::uint64_t offset : offsets) {
      if (give_locked(c, offset)) add_to(emptied, unit_of(offset));
    }
    // Of the units that this emptied one stays as the spare, with room for all.
    for (std::size_t n = 0; n < offsets.size();) {
      if (c.partial == kNone) link(c, std::exchange(c.spare, kNone));
      const UnitIndex unit = fullest_locked(c);
      ESPALIER_ASSERT(unit != kNone);
      for (Unit& u = units_[unit]; n < offsets.size() && u.available() > 0; ++n) {
        offsets[n] = take_slot(unit, cls);
      }
      if (units_[unit].available() == 0) unlink(c, unit);
    }
    c.free -= offsets.size();
  }
  give_units(c, emptied);
}

bool BufferPool::is_buffer_begin(std::uint64_t offset, BufferKind kind,
                                 std::uint32_t generation) const {
  return (generation & wire::kGenerationMask) != 0 &&
         ((generation_in_use(offset, kind) ^ generation) & wire::kGenerationMask) == 0;
}

std::uint32_t BufferPool::generation_in_use(std::uint64_t offset, BufferKind kind) const {
  if (offset < kExtentBytes || offset >= region_.bytes()) return 0;
  const UnitIndex unit = unit_of(offset);
  const std::uint8_t tag = tag_of(unit);
  if (tag == 0) return 0;
  const SizeClass cls = (tag & ~kWhole) - 1u;
  const bool whole = (tag & kWhole) != 0;
  const std::uint64_t first = first_buffer(unit);
  if (kind_of(cls) != kind || offset < first || (offset - first) % class_bytes(cls) != 0 ||
      (offset - first) / class_bytes(cls) >=
          (whole ? buffers_per_extent(cls) : buffers_per_slab(cls))) {
    return 0;
  }
  // Without memory there is nothing to read, and to read it would bring some.
  if (std::atomic_ref(const_cast<std::uint32_t&>(units_[unit].buffers))
          .load(std::memory_order_relaxed) == 0) {
    return 0;
  }
  std::byte* const buffer = region_.at(offset);
  // A buffer is released by superseded = 0, then by another generation.
  const bool filled = superseded_at(buffer).load(std::memory_order_acquire) != 0;
  return filled ? generation_at(buffer).load(std::memory_order_relaxed) : 0;
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

std::uint64_t BufferPool::free_bytes() const {
  std::uint64_t bytes = 0;
  for (SizeClass cls = 0; cls < kClasses; ++cls) bytes += stats(cls).free * class_bytes(cls);
  return bytes;
}

Result<std::uint32_t> BufferPool::take(SizeClass cls, std::span<std::uint64_t> out) {
  Class& c = classes_[cls];
  {
    const std::lock_guard lock(c.mutex);
    if (const std::uint32_t n = take_locked(c, cls, out); n > 0) return n;
  }
  if (const std::uint32_t n = grow(cls, out); n > 0) return n;
  return region_.out_of_memory();
}

Result<std::uint64_t> BufferPool::allocate_or_reclaim(SizeClass cls) {
  constexpr int kTries = 64;
  auto taken = allocate(cls);
  for (int i = 0; !taken && i < kTries && reclaim_ && reclaim_(i != 0); ++i) {
    taken = allocate(cls);
    if (!taken) std::this_thread::yield();
  }
  return taken;
}

std::uint32_t BufferPool::take_locked(Class& c, SizeClass cls, std::span<std::uint64_t> out) {
  std::uint32_t n = 0;
  while (n < out.size()) {
    if (c.partial == kNone) {
      if (c.spare == kNone) break;
      link(c, std::exchange(c.spare, kNone));
    }
    const UnitIndex unit = c.partial;
    Unit& u = units_[unit];
    for (; n < out.size() && u.available() > 0; ++n) out[n] = take_slot(unit, cls);
    if (u.available() == 0) unlink(c, unit);
  }
  c.free -= n;
  return n;
}

std::uint64_t BufferPool::take_slot(UnitIndex unit, SizeClass cls) {
  Unit& u = units_[unit];
  const std::uint32_t slot = u.free_count > 0 ? u.free_stack[--u.free_count] : u.carved++;
  return first_buffer(unit) + slot * class_bytes(cls);
}

void BufferPool::give(SizeClass cls, std::span<const std::uint64_t> offsets) {
  Class& c = classes_[cls];
  UnitIndex emptied = kNone;
  {
    const std::lock_guard lock(c.mutex);
    for (const std::uint64_t offset : offsets) {
      ESPALIER_ASSERT(class_at(unit_of(offset)) == cls);
      if (give_locked(c, offset)) add_to(emptied, unit_of(offset));
    }
  }
  give_units(c, emptied);  // giving pages back takes long: not under the lock
}

bool BufferPool::give_locked(Class& c, std::uint64_t offset) {
  const UnitIndex unit = unit_of(offset);
  const SizeClass cls = class_at(unit);
  Unit& u = units_[unit];
  ESPALIER_ASSERT(u.buffers > 0 && u.free_count < u.carved);  // else it was released twice
  const std::uint64_t in_unit = offset - first_buffer(unit);
  ESPALIER_ASSERT(in_unit % class_bytes(cls) == 0);
  const std::uint32_t generation =
      generation_at(region_.at(offset)).load(std::memory_order_relaxed);
  if (generation != 0) u.generation_high = later(u.generation_high, generation);
  if (u.available() == 0) link(c, unit);
  u.free_stack[u.free_count++] = static_cast<std::uint16_t>(in_unit / class_bytes(cls));
  ++c.free;
  if (u.free_count < u.carved) return false;
  unlink(c, unit);
  if (c.spare == kNone && class_bytes(cls) < kExtentBytes) {
    c.spare = unit;
    return false;
  }
  disown_locked(c, unit);
  return true;
}

void BufferPool::prepare_header(std::uint64_t offset) {
  // Zeros: never used since the unit was taken. superseded is 0 in both cases.
  const auto generation = generation_at(region_.at(offset));
  if (generation.load(std::memory_order_relaxed) == 0) {
    generation.store(units_[unit_of(offset)].generation_first, std::memory_order_relaxed);
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
  if (left < 0) [[likely]]
    return left == kFailing;
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

}  // namespace espalier::memory

// SPDX-License-Identifier: Apache-2.0
// Units of a BufferPool (memory/buffer_pool.hpp): how a class comes by memory and gives it back.
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "memory/buffer_pool.hpp"
#include "memory/generation.hpp"
#include "memory/planted_memory_bugs.hpp"

namespace espalier::memory {
namespace {

std::atomic_ref<std::uint32_t> shared(std::uint32_t& value) { return std::atomic_ref(value); }

}  // namespace

std::uint32_t BufferPool::grow(SizeClass cls, std::span<std::uint64_t> out) {
  UnitIndex unit = acquire(cls);
  if (unit == kNone) {
    trim();
    unit = acquire(cls);
  }
  if (unit == kNone) return 0;
  const bool whole = is_whole(unit);
  Class& c = classes_[cls];
  const std::uint32_t buffers = whole ? buffers_per_extent(cls) : buffers_per_slab(cls);
  auto* const free_stack = new (std::nothrow) std::uint16_t[buffers];
  if (free_stack == nullptr) {
    give_unit(c, unit);
    return 0;
  }
  const std::lock_guard lock(c.mutex);
  Unit& u = units_[unit];
  u.free_stack = free_stack;
  u.free_count = 0;
  u.carved = 0;
  u.generation_first = next_generation(u.generation_high);
  u.generation_high = u.generation_first;
  shared(u.buffers).store(buffers, std::memory_order_relaxed);
  c.buffers += buffers;
  c.free += buffers;
  if (!whole) ++c.slabs;
  link(c, unit);  // before all others, so it is what is taken of first
  return take_locked(c, cls, out);
}

// Slabs first, for what needs little; extents for the rest; and slabs again where less than an
// extent is left.
BufferPool::UnitIndex BufferPool::acquire(SizeClass cls) {
  if (!fits_slabs(cls)) return acquire(cls, true);
  bool few = false;
  {
    const std::lock_guard lock(classes_[cls].mutex);
    few = classes_[cls].slabs < kSlabsMax;
  }
  const UnitIndex unit = acquire(cls, !few);
  return unit != kNone || few ? unit : acquire(cls, false);
}

BufferPool::UnitIndex BufferPool::acquire(SizeClass cls, bool whole) {
  Class& c = classes_[cls];
  UnitIndex unit = kNone;
  {
    const std::lock_guard lock(c.mutex);
    unit = c.empty[whole];
    if (unit != kNone) c.empty[whole] = units_[unit].next;
  }
  if (planted(Bug::extent_changes_class) && unit == kNone && whole && extents_of(cls) == 1) {
    for (SizeClass nodes = kValueClasses; nodes < kTableClass && unit == kNone; ++nodes) {
      Class& other = classes_[nodes];
      const std::lock_guard lock(other.mutex);
      unit = other.empty[whole];
      if (unit == kNone) continue;
      other.empty[whole] = units_[unit].next;
      set_tag(unit, cls, whole);
    }
  }
  if (unit == kNone) return acquire_fresh(cls, whole);
  if (region_.retake(unit * kSlabBytes, unit_bytes(unit))) return unit;
  const std::lock_guard lock(c.mutex);
  units_[unit].next = std::exchange(c.empty[whole], unit);
  return kNone;
}

BufferPool::UnitIndex BufferPool::acquire_fresh(SizeClass cls, bool whole) {
  if (whole) {
    const auto offset = region_.take(extents_of(cls));
    if (!offset) return kNone;
    const auto unit = static_cast<UnitIndex>(*offset / kSlabBytes);
    set_tag(unit, cls, true);
    return unit;
  }
  const std::lock_guard lock(slabs_mutex_);
  OpenExtent& open = open_[static_cast<std::size_t>(kind_of(cls))];
  if (open.used == kSlabsPerExtent) {
    const auto offset = region_.set_aside();
    if (!offset) return kNone;
    open = {*offset, 0};
  }
  const std::uint64_t offset = open.offset + open.used * kSlabBytes;
  if (!region_.retake(offset, kSlabBytes)) return kNone;
  ++open.used;
  const auto unit = static_cast<UnitIndex>(offset / kSlabBytes);
  set_tag(unit, cls, false);
  return unit;
}

void BufferPool::disown_locked(Class& c, UnitIndex unit) {
  Unit& u = units_[unit];
  c.buffers -= u.buffers;
  c.free -= u.buffers;
  if (!is_whole(unit)) --c.slabs;
  shared(u.buffers).store(0, std::memory_order_relaxed);
  delete[] std::exchange(u.free_stack, nullptr);
}

void BufferPool::give_unit(Class& c, UnitIndex unit) {
  region_.give(unit * kSlabBytes, unit_bytes(unit));
  const std::lock_guard lock(c.mutex);
  units_[unit].next = std::exchange(c.empty[is_whole(unit)], unit);
}

void BufferPool::add_to(UnitIndex& emptied, UnitIndex unit) {
  units_[unit].next = std::exchange(emptied, unit);
}

void BufferPool::give_units(Class& c, UnitIndex emptied) {
  while (emptied != kNone) {
    const UnitIndex unit = std::exchange(emptied, units_[emptied].next);
    give_unit(c, unit);
  }
}

BufferPool::UnitIndex BufferPool::fullest_locked(const Class& c) const {
  UnitIndex fullest = c.partial;
  const auto used = [&](UnitIndex unit) { return units_[unit].carved - units_[unit].free_count; };
  for (UnitIndex unit = c.partial; unit != kNone; unit = units_[unit].next) {
    if (used(unit) > used(fullest)) fullest = unit;
  }
  return fullest;
}

void BufferPool::link(Class& c, UnitIndex unit) {
  Unit& u = units_[unit];
  u.previous = kNone;
  u.next = c.partial;
  if (c.partial != kNone) units_[c.partial].previous = unit;
  c.partial = unit;
}

void BufferPool::unlink(Class& c, UnitIndex unit) {
  const Unit& u = units_[unit];
  if (u.previous != kNone) {
    units_[u.previous].next = u.next;
  } else {
    c.partial = u.next;
  }
  if (u.next != kNone) units_[u.next].previous = u.previous;
}

std::uint8_t BufferPool::tag_of(UnitIndex unit) const {
  return std::atomic_ref(const_cast<std::uint8_t&>(units_[unit].tag))
      .load(std::memory_order_acquire);
}

void BufferPool::set_tag(UnitIndex unit, SizeClass cls, bool whole) {
  const auto tag = static_cast<std::uint8_t>((cls + 1) | (whole ? kWhole : 0u));
  std::atomic_ref(units_[unit].tag).store(tag, std::memory_order_release);
}

BufferPool::UnitIndex BufferPool::unit_of(std::uint64_t offset) const {
  const auto extent = static_cast<UnitIndex>(offset / kExtentBytes * kSlabsPerExtent);
  return is_whole(extent) ? extent : static_cast<UnitIndex>(offset / kSlabBytes);
}

std::uint64_t BufferPool::first_buffer(UnitIndex unit) const {
  return is_whole(unit) ? first_buffer_of(unit / kSlabsPerExtent, class_at(unit))
                        : unit * kSlabBytes;
}

std::uint64_t BufferPool::unit_bytes(UnitIndex unit) const {
  return is_whole(unit) ? extents_of(class_at(unit)) * kExtentBytes : kSlabBytes;
}

}  // namespace espalier::memory

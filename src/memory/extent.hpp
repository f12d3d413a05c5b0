// SPDX-License-Identifier: Apache-2.0
// How an extent is cut into buffers.
//
//   | stagger | buffer | buffer | ... | buffer | rest |      2 MiB, of one class
//   | slab | slab | slab | slab | slab | slab | slab | slab |  8 * 256 KiB, each of one class
//   | buffer                    ...                    |      a run of extents, one large buffer
//
// A unit is what a class takes and returns: a whole extent, a slab, or a run. Slabs serve the first
// megabytes of classes that need little: two dozen classes of short values, each with a nearly
// empty extent, would fill a small store. Nodes never lie in slabs.
//
// Cache coloring: buffers whose size is a power of two would all begin in the same few sets of a
// cache, and their first lines, which every walk reads, would evict each other; with 32 lookups in
// flight that cost two fifths of the throughput (docs/benchmarks.md). So each extent begins its
// buffers at one of eight distances that together span 4 KiB, one way of a first-level cache. Large
// buffers and slabs are not staggered: they cannot spare the room.
#pragma once

#include <array>
#include <cstdint>

#include "memory/region.hpp"
#include "memory/size_class.hpp"
#include "wire/ref.hpp"

namespace espalier::memory {

inline constexpr std::uint64_t kStaggerBytes = wire::kBlockBytes;
inline constexpr std::uint64_t kStaggers = 8;
inline constexpr std::uint64_t kStaggeredBytesMax = 16384;

inline constexpr std::uint64_t kSlabsPerExtent = kExtentBytes / kSlabBytes;
inline constexpr std::uint64_t kSlabBufferBytesMax = 65536;
/// A class takes at most so many slabs, and then extents.
inline constexpr std::uint32_t kSlabsMax = 16;

[[nodiscard]] constexpr bool staggered(SizeClass cls) {
  return class_bytes(cls) <= kStaggeredBytesMax;
}

/// Whether buffers of this class may lie in slabs.
[[nodiscard]] constexpr bool fits_slabs(SizeClass cls) {
  return class_bytes(cls) <= kSlabBufferBytesMax && kind_of(cls) != BufferKind::node;
}

/// How many extents carry one whole unit of this class: more than 1 for runs.
[[nodiscard]] constexpr std::uint64_t extents_of(SizeClass cls) {
  return class_bytes(cls) <= kExtentBytes ? 1 : class_bytes(cls) / kExtentBytes;
}

/// How many buffers of this class an extent holds; 1 where a buffer takes whole extents.
[[nodiscard]] constexpr std::uint32_t buffers_per_extent(SizeClass cls) {
  if (class_bytes(cls) >= kExtentBytes) return 1;
  const std::uint64_t room = kExtentBytes - (staggered(cls) ? (kStaggers - 1) * kStaggerBytes : 0);
  return static_cast<std::uint32_t>(room / class_bytes(cls));
}
static_assert(buffers_per_extent(0) <= UINT16_MAX, "their indices have 16 bits");

/// How many buffers of this class a slab holds.
[[nodiscard]] constexpr std::uint32_t buffers_per_slab(SizeClass cls) {
  return static_cast<std::uint32_t>(kSlabBytes / class_bytes(cls));
}

/// How many buffers the smallest unit of this class holds.
[[nodiscard]] constexpr std::uint32_t buffers_per_unit(SizeClass cls) {
  return fits_slabs(cls) ? buffers_per_slab(cls) : buffers_per_extent(cls);
}

/// Offset of the first buffer in an extent (by number).
[[nodiscard]] constexpr std::uint64_t first_buffer_of(std::uint64_t extent, SizeClass cls) {
  return extent * kExtentBytes + (staggered(cls) ? extent % kStaggers * kStaggerBytes : 0);
}

}  // namespace espalier::memory

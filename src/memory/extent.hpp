// SPDX-License-Identifier: Apache-2.0
// How an extent is cut into buffers of one class.
//
//   | stagger | buffer | buffer | ... | buffer | rest |      2 MiB
//
// Buffers whose size is a power of two would all begin in the same few sets of a cache, and their
// first lines, which every walk reads, would push each other out: with 32 lookups in flight that
// cost two fifths of the throughput (docs/benchmarks.md). So each extent begins its buffers at
// another of eight distances that together span 4 KiB, one way of a first-level cache. Large
// buffers are not staggered: of them the room would be missed.
#pragma once

#include <cstdint>

#include "memory/region.hpp"
#include "memory/size_class.hpp"
#include "wire/ref.hpp"

namespace espalier::memory {

inline constexpr std::uint64_t kStaggerBytes = wire::kBlockBytes;
inline constexpr std::uint64_t kStaggers = 8;
inline constexpr std::uint64_t kStaggeredBytesMax = 16384;

[[nodiscard]] constexpr bool staggered(SizeClass cls) {
  return class_bytes(cls) <= kStaggeredBytesMax;
}

/// How many buffers of this class an extent holds; 1 where a buffer takes whole extents.
[[nodiscard]] constexpr std::uint32_t buffers_per_extent(SizeClass cls) {
  if (cls >= kSmallClasses) return 1;
  const std::uint64_t room = kExtentBytes - (staggered(cls) ? (kStaggers - 1) * kStaggerBytes : 0);
  return static_cast<std::uint32_t>(room / class_bytes(cls));
}
static_assert(buffers_per_extent(0) <= UINT16_MAX, "their indices have 16 bits");

/// Offset of the first buffer in an extent (by number).
[[nodiscard]] constexpr std::uint64_t first_buffer_of(std::uint32_t extent, SizeClass cls) {
  return extent * kExtentBytes + (staggered(cls) ? extent % kStaggers * kStaggerBytes : 0);
}

}  // namespace espalier::memory

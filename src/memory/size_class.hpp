// SPDX-License-Identifier: Apache-2.0
// The sizes in which buffers come.
//
//   class  0 ..  7   512, 1024, ... 4096         every multiple of 512
//   class  8 .. 39   5120, 6144, 7168, 8192, ... 1 MiB    four steps per doubling
//   class 40 .. 48   2, 4, ... 18 MiB            whole extents
//
// All are multiples of 512, the grain of references. Four steps per doubling bound the waste of a
// value at a fifth; the largest holds a value of 16 MiB and its header.
#pragma once

#include <bit>
#include <cstdint>

namespace espalier::memory {

/// Index of a size class.
using SizeClass = std::uint32_t;

inline constexpr SizeClass kFineClasses = 8;
inline constexpr SizeClass kSmallClasses = 40;
inline constexpr SizeClass kClasses = 49;
inline constexpr std::uint64_t kBufferBytesMax = std::uint64_t{18} << 20;

/// Bytes of a buffer of this class.
[[nodiscard]] constexpr std::uint64_t class_bytes(SizeClass cls) {
  if (cls < kFineClasses) return std::uint64_t{512} * (cls + 1);
  if (cls < kSmallClasses) {
    const SizeClass step = cls - kFineClasses;
    const std::uint64_t quarter = std::uint64_t{1024} << (step / 4);
    return quarter * (5 + step % 4);
  }
  return (std::uint64_t{2} << 20) * (cls - kSmallClasses + 1);
}

/// The smallest class that holds so many bytes; kClasses if none does.
[[nodiscard]] constexpr SizeClass class_of(std::uint64_t bytes) {
  if (bytes == 0) return 0;
  if (bytes <= 4096) return static_cast<SizeClass>((bytes - 1) / 512);
  if (bytes <= std::uint64_t{1} << 20) {
    const auto doubling = static_cast<unsigned>(std::bit_width(bytes - 1)) - 13;
    const std::uint64_t quarter = std::uint64_t{1024} << doubling;
    return static_cast<SizeClass>(kFineClasses + 4 * doubling + (bytes - 1) / quarter - 4);
  }
  if (bytes <= kBufferBytesMax) {
    return static_cast<SizeClass>(kSmallClasses + (bytes - 1) / (std::uint64_t{2} << 20));
  }
  return kClasses;
}

static_assert(class_bytes(kFineClasses - 1) == 4096 && class_bytes(kFineClasses) == 5120);
static_assert(class_bytes(kSmallClasses - 1) == std::uint64_t{1} << 20);
static_assert(class_bytes(kSmallClasses) == std::uint64_t{2} << 20);
static_assert(class_bytes(kClasses - 1) == kBufferBytesMax);
static_assert([] {
  for (SizeClass cls = 0; cls < kClasses; ++cls) {
    if (class_of(class_bytes(cls)) != cls || class_bytes(cls) % 512 != 0) return false;
    if (class_of(class_bytes(cls) + 1) != cls + 1) return false;
  }
  return true;
}());

}  // namespace espalier::memory

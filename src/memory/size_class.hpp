// SPDX-License-Identifier: Apache-2.0
// Size classes of buffers: the kind of contents, and the length.
//
//   class  0 ..  7   values of 512, 1024, ... 4096           every multiple of 512
//   class  8 .. 39   values of 5120, 6144, 7168, 8192, ... 1 MiB    four steps per doubling
//   class 40 .. 48   values of 2, 4, ... 18 MiB              whole extents
//   class 49 .. 56   nodes of 512, 1024, ... 64 KiB          powers of two, as maps have them
//   class 57 .. 59   512, 32 KiB, 64 KiB for map headers, pages and directories of page tables
//   class 60 .. 62   32 KiB, 64 KiB, 2 MiB of relations: page lists, headers, pages of rows
//   class 63 .. 65   512, 16 KiB, 64 KiB of hash maps: headers, directories, segments of bins
//   class 66         32 KiB: pages of records of hash maps
//
// All are multiples of 512, the grain of references. Four steps per doubling bound the waste of a
// value at a fifth; the largest holds a value of 16 MiB and its header. A class is a kind and a
// length, because memory once cut for one class is never cut for another: a reference that outlived
// its node then finds a buffer header or zeros, never the inside of a value.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace espalier::memory {

/// The kind of a buffer's contents: a value, a node, a part of a map's page table, a part of a
/// relation, bins of a hash map and their directories, records of a hash map.
enum class BufferKind : std::uint8_t {
  value = 0,
  node = 1,
  table = 2,
  relation = 3,
  bins = 4,
  records = 5,
};
inline constexpr std::uint32_t kBufferKinds = 6;

/// Index of a class.
using SizeClass = std::uint32_t;

inline constexpr SizeClass kFineClasses = 8;
inline constexpr SizeClass kSmallClasses = 40;
inline constexpr SizeClass kValueClasses = 49;
inline constexpr SizeClass kNodeClasses = 8;
inline constexpr SizeClass kTableClass = kValueClasses + kNodeClasses;  // the first of three
inline constexpr SizeClass kRelationClass = kTableClass + 3;             // the first of three
inline constexpr SizeClass kBinsClass = kRelationClass + 3;              // the first of three
inline constexpr SizeClass kRecordsClass = kBinsClass + 3;
inline constexpr SizeClass kClasses = kRecordsClass + 1;
inline constexpr std::uint64_t kBufferBytesMax = std::uint64_t{18} << 20;
inline constexpr std::uint64_t kNodeBufferBytesMax = std::uint64_t{512} << (kNodeClasses - 1);

namespace detail {

constexpr std::uint64_t compute_class_bytes(SizeClass cls) {
  if (cls == kRecordsClass) return 32768;
  if (cls >= kBinsClass)
    return cls == kBinsClass ? 512 : std::uint64_t{4096} << 2 * (cls - kBinsClass);
  if (cls >= kRelationClass)
    return cls == kBinsClass - 1 ? std::uint64_t{2} << 20
                                 : std::uint64_t{32768} << (cls - kRelationClass);
  if (cls >= kTableClass)
    return cls == kTableClass ? 512 : std::uint64_t{16384} << (cls - kTableClass);
  if (cls >= kValueClasses) return std::uint64_t{512} << (cls - kValueClasses);
  if (cls < kFineClasses) return std::uint64_t{512} * (cls + 1);
  if (cls < kSmallClasses) {
    const SizeClass step = cls - kFineClasses;
    const std::uint64_t quarter = std::uint64_t{1024} << (step / 4);
    return quarter * (5 + step % 4);
  }
  return (std::uint64_t{2} << 20) * (cls - kSmallClasses + 1);
}

inline constexpr auto kClassBytes = [] {
  std::array<std::uint32_t, kClasses> bytes{};
  for (SizeClass cls = 0; cls < kClasses; ++cls) {
    bytes[cls] = static_cast<std::uint32_t>(compute_class_bytes(cls));
  }
  return bytes;
}();

}  // namespace detail

/// Bytes of a buffer of this class.
[[nodiscard]] constexpr std::uint64_t class_bytes(SizeClass cls) {
  return detail::kClassBytes[cls];
}

/// What buffers of this class hold.
[[nodiscard]] constexpr BufferKind kind_of(SizeClass cls) {
  if (cls < kValueClasses) return BufferKind::value;
  if (cls < kTableClass) return BufferKind::node;
  if (cls < kRelationClass) return BufferKind::table;
  if (cls < kBinsClass) return BufferKind::relation;
  return cls < kRecordsClass ? BufferKind::bins : BufferKind::records;
}

/// The smallest class of values that holds so many bytes; kClasses if none does.
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

/// The class of nodes of so many bytes, a power of two; kClasses if there are no such nodes.
[[nodiscard]] constexpr SizeClass node_class_of(std::uint64_t bytes) {
  if (!std::has_single_bit(bytes) || bytes < 512 || bytes > kNodeBufferBytesMax) return kClasses;
  return kValueClasses + static_cast<SizeClass>(std::countr_zero(bytes)) - 9;
}

/// The smallest class of map headers and parts of page tables that holds so many bytes; kClasses if
/// none does.
[[nodiscard]] constexpr SizeClass table_class_of(std::uint64_t bytes) {
  SizeClass cls = kTableClass;
  while (cls < kRelationClass && class_bytes(cls) < bytes) ++cls;
  return cls < kRelationClass ? cls : kClasses;
}

/// The smallest class of parts of relations that holds so many bytes; kClasses if none does.
[[nodiscard]] constexpr SizeClass relation_class_of(std::uint64_t bytes) {
  SizeClass cls = kRelationClass;
  while (cls < kBinsClass && class_bytes(cls) < bytes) ++cls;
  return cls < kBinsClass ? cls : kClasses;
}

/// The smallest class of headers, directories and segments of hash maps that holds so many bytes;
/// kClasses if none does.
[[nodiscard]] constexpr SizeClass bins_class_of(std::uint64_t bytes) {
  SizeClass cls = kBinsClass;
  while (cls < kRecordsClass && class_bytes(cls) < bytes) ++cls;
  return cls < kRecordsClass ? cls : kClasses;
}

static_assert(class_bytes(kFineClasses - 1) == 4096 && class_bytes(kFineClasses) == 5120);
static_assert(class_bytes(kSmallClasses - 1) == std::uint64_t{1} << 20);
static_assert(class_bytes(kSmallClasses) == std::uint64_t{2} << 20);
static_assert(class_bytes(kValueClasses - 1) == kBufferBytesMax);
static_assert(class_bytes(kTableClass - 1) == kNodeBufferBytesMax);
static_assert(class_bytes(kTableClass + 1) == 32768 && class_bytes(kTableClass + 2) == 65536);
static_assert(class_bytes(kRelationClass) == 32768 && class_bytes(kRelationClass + 1) == 65536);
static_assert(class_bytes(kRelationClass + 2) == std::uint64_t{2} << 20);
static_assert(class_bytes(kBinsClass) == 512 && class_bytes(kBinsClass + 1) == 16384);
static_assert(class_bytes(kBinsClass + 2) == 65536 && class_bytes(kRecordsClass) == 32768);
static_assert([] {
  for (SizeClass cls = 0; cls < kClasses; ++cls) {
    if (class_bytes(cls) % 512 != 0) return false;
  }
  for (SizeClass cls = 0; cls < kValueClasses; ++cls) {
    if (class_of(class_bytes(cls)) != cls) return false;
    if (class_of(class_bytes(cls) + 1) != (cls + 1 < kValueClasses ? cls + 1 : kClasses)) {
      return false;
    }
  }
  return true;
}());

}  // namespace espalier::memory

// SPDX-License-Identifier: Apache-2.0
// Message formats of regions (docs/formats/region.md). The bytes of a region have no format: they
// belong to its users.
//
// Thread: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace espalier::region {

/// Longest read or write of one request. Longer ones are split.
inline constexpr std::uint32_t kRequestBytesMax = 65536;
/// Size and alignment of the word of an atomic.
inline constexpr std::uint64_t kWordBytes = 8;

///   0        8       12         16
///   +--------+-------+----------+
///   | offset | bytes | reserved |
///   +--------+-------+----------+
struct RegionRange {
  std::uint64_t offset;
  std::uint32_t bytes;
  std::uint32_t reserved;
};
static_assert(sizeof(RegionRange) == 16 && offsetof(RegionRange, bytes) == 8);
static_assert(std::has_unique_object_representations_v<RegionRange>);

///   0        8         16     24
///   +--------+---------+------+
///   | offset | compare | swap |
///   +--------+---------+------+
struct RegionSwap {
  std::uint64_t offset;
  std::uint64_t compare;
  std::uint64_t swap;
};
static_assert(sizeof(RegionSwap) == 24 && offsetof(RegionSwap, compare) == 8);
static_assert(offsetof(RegionSwap, swap) == 16);
static_assert(std::has_unique_object_representations_v<RegionSwap>);

/// Where a session may READ and WRITE by a key of its own, and whether atomics are granted too.
///
///   0      8       16    20      24
///   +------+-------+-----+-------+
///   | base | bytes | key | flags |
///   +------+-------+-----+-------+
struct RegionGrant {
  std::uint64_t base;
  std::uint64_t bytes;
  std::uint32_t key;
  std::uint32_t flags;  // kGrantsAtomics
};
static_assert(sizeof(RegionGrant) == 24 && offsetof(RegionGrant, bytes) == 8);
static_assert(offsetof(RegionGrant, key) == 16 && offsetof(RegionGrant, flags) == 20);
static_assert(std::has_unique_object_representations_v<RegionGrant>);
inline constexpr std::uint32_t kGrantsAtomics = 1;

/// The form of a persistent region in its creation record. That of any other is its size, 8 bytes.
///
///   0       8      12         16
///   +-------+------+----------+
///   | bytes | kind | reserved |
///   +-------+------+----------+
struct PersistentForm {
  static constexpr std::uint32_t kPersistent = 1;

  std::uint64_t bytes;
  std::uint32_t kind;
  std::uint32_t reserved;
};
static_assert(sizeof(PersistentForm) == 16 && offsetof(PersistentForm, kind) == 8);
static_assert(offsetof(PersistentForm, reserved) == 12);
static_assert(std::has_unique_object_representations_v<PersistentForm>);

/// Why an access is invalid, as the detail of invalid_argument.
enum class RegionFault : std::uint32_t {
  beyond = 1,      // the range exceeds the region
  misaligned = 2,  // an atomic whose offset is no multiple of 8
};

/// Whether `bytes` from `offset` on lie within a region of `all` bytes, without overflow.
[[nodiscard]] constexpr bool is_within(std::uint64_t all, std::uint64_t offset,
                                       std::uint64_t bytes) {
  return offset <= all && bytes <= all - offset;
}
[[nodiscard]] constexpr std::optional<RegionFault> fault_of_range(std::uint64_t all,
                                                                  std::uint64_t offset,
                                                                  std::uint64_t bytes) {
  return is_within(all, offset, bytes) ? std::nullopt : std::optional(RegionFault::beyond);
}
[[nodiscard]] constexpr std::optional<RegionFault> fault_of_word(std::uint64_t all,
                                                                 std::uint64_t offset) {
  if (offset % kWordBytes != 0) return RegionFault::misaligned;
  return fault_of_range(all, offset, kWordBytes);
}

}  // namespace espalier::region

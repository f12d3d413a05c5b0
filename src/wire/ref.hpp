// SPDX-License-Identifier: Apache-2.0
// How one buffer of a region names another: where it lies, and which use of it is meant.
//
//   63            36 35                                 0
//  +----------------+------------------------------------+
//  | generation     | offset from the region's base / 512|
//  +----------------+------------------------------------+
//
// A buffer's generation changes before the buffer is reused, so a reference that outlived its
// target is recognised: the target's header no longer carries the low 28 bits of the expected
// generation.
#pragma once

#include <cstdint>

namespace espalier::wire {

inline constexpr std::uint64_t kBlockBytes = 512;
inline constexpr unsigned kBlockBits = 36;
inline constexpr std::uint64_t kBlockMask = (std::uint64_t{1} << kBlockBits) - 1;
inline constexpr std::uint32_t kGenerationMask = (std::uint32_t{1} << (64 - kBlockBits)) - 1;

/// 0 is no reference: generation 0 never occurs.
struct Ref {
  std::uint64_t bits = 0;

  static constexpr Ref make(std::uint64_t offset, std::uint32_t generation) {
    return Ref{(std::uint64_t{generation & kGenerationMask} << kBlockBits) |
               ((offset / kBlockBytes) & kBlockMask)};
  }
  [[nodiscard]] constexpr std::uint64_t offset() const { return (bits & kBlockMask) * kBlockBytes; }
  [[nodiscard]] constexpr std::uint32_t generation() const {
    return static_cast<std::uint32_t>(bits >> kBlockBits);
  }
  explicit constexpr operator bool() const { return bits != 0; }
  friend constexpr bool operator==(Ref, Ref) = default;
};
static_assert(sizeof(Ref) == 8);

/// The first 24 bytes of every buffer, node or value, in use or free.
///
///   0       4           8          16            24
///   +-------+-----------+----------+-------------+
///   | map   | generation| created  | superseded  |
///   +-------+-----------+----------+-------------+
///
/// `superseded` is all ones in a live buffer, the version that ended it in one that waits, and 0 in
/// a buffer that is free, being filled, or was never used: 0 means start again.
/// `created` is all ones in a live buffer that is no node (a value, a page of the page table): it
/// can answer at no version, whatever its bytes look like.
struct BufferHeader {
  std::uint32_t map_id;
  std::uint32_t generation;
  std::uint64_t created;
  std::uint64_t superseded;
};
static_assert(sizeof(BufferHeader) == 24);

inline constexpr std::uint64_t kLive = ~std::uint64_t{0};
inline constexpr std::uint64_t kNoNode = ~std::uint64_t{0};

}  // namespace espalier::wire

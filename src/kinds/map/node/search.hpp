// SPDX-License-Identifier: Apache-2.0
// Search kernels: how many heads of a node lie below a key's head.
//
// One function, three instruction sets; the scalar form is the oracle that the others are tested
// against. The kit is chosen once, at start-up; the kernels themselves are in search_kits.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace espalier::tree {

/// How many of some ascending heads are below, and how many below or equal to, a given head.
struct Rank {
  std::uint32_t below = 0;
  std::uint32_t below_or_equal = 0;
  friend bool operator==(const Rank&, const Rank&) = default;
};

/// Which instruction set a kit uses.
enum class Isa : std::uint8_t { scalar, avx2, avx512 };

/// The chosen kernels. Thread: any. Heads may be unaligned, slots are aligned to 2.
struct SearchKit {
  /// Ranks `head` among `count` (0 to 64) 16-bit heads. May read up to 128 bytes from `heads`.
  Rank (*rank16)(const std::byte* key_prefixes, std::uint32_t count, std::uint16_t head);
  /// Ranks `head` among 16 32-bit heads.
  Rank (*rank32)(const std::byte* key_prefixes, std::uint32_t head);
  /// Which of `count` (0 to 64) 16-bit log slots carry `tag` in their upper byte; bit i: slot i.
  /// May read up to 128 bytes.
  std::uint64_t (*match_tags)(const std::byte* slots, std::uint32_t count, std::uint8_t tag);
  Isa isa;
  const char* name;
};

/// The kit for `isa`, or a null pointer if this machine cannot run it.
const SearchKit* search_kit(Isa isa);

/// The best kit of this machine; the environment variable ESPALIER_ISA (scalar, avx2, avx512) caps
/// it.
const SearchKit& best_search_kit();

}  // namespace espalier::tree

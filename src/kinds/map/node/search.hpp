// SPDX-License-Identifier: Apache-2.0
// Search kernels: rank a key prefix among those of a node, and match log tags.
//
// One function, three instruction sets; the scalar form is the oracle of the tests. The kit is
// chosen once, at start-up; the kernels themselves are in search_kits.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace espalier::tree {

/// How many of some ascending key prefixes are below, and how many below or equal to, a given one.
struct Rank {
  std::uint32_t below = 0;
  std::uint32_t below_or_equal = 0;
  friend bool operator==(const Rank&, const Rank&) = default;
};

/// The instruction set of a kit.
enum class Isa : std::uint8_t { scalar, avx2, avx512 };

/// The chosen kernels. Thread: any. Key prefixes may be unaligned, slots are aligned to 2.
struct SearchKit {
  /// Ranks `head` among `count` (0 to 64) 16-bit key prefixes. May read up to 128 bytes.
  Rank (*rank16)(const std::byte* key_prefixes, std::uint32_t count, std::uint16_t head);
  /// Ranks `head` among 16 32-bit key prefixes.
  Rank (*rank32)(const std::byte* key_prefixes, std::uint32_t head);
  /// Which of `count` (0 to 64) 16-bit log slots carry `tag` in their upper byte; bit i: slot i.
  /// May read up to 128 bytes.
  std::uint64_t (*match_tags)(const std::byte* slots, std::uint32_t count, std::uint8_t tag);
  Isa isa;
  const char* name;
};

/// The kit for `isa`, or null if this machine lacks the instructions.
const SearchKit* search_kit(Isa isa);

/// The best kit of this machine, capped by the environment variable ESPALIER_ISA (scalar, avx2,
/// avx512).
const SearchKit& best_search_kit();

}  // namespace espalier::tree

// SPDX-License-Identifier: Apache-2.0
// How one node of a set is searched, step by step as switches do that subtract 32 bits at a time
// and look results up. The host's form is one comparison of 64 bits; a test checks both against
// each other.
//
// Source: [Fat-B+Tree §III-A, Figure 3], there for "key above pivot"; here a key that equals a
// pivot belongs to the right of it, as in the ordered map.
//
// Thread: any.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace espalier::dataplane {

/// Whether key >= pivot, by halves: a table is keyed by "the high halves differ", one more by the
/// highest bits, and the answer is a bit of the key or the sign of a difference.
[[nodiscard]] constexpr bool reaches_by_halves(std::uint64_t key, std::uint64_t pivot) {
  // Whether a >= b for 32 bits: if the highest bits differ, that of a decides; else the difference
  // a - b is exact in 32 bits, and its sign decides.
  constexpr auto reaches = [](std::uint32_t a, std::uint32_t b) {
    const std::uint32_t differ = a ^ b;
    const std::uint32_t difference = a - b;
    return (differ >> 31 != 0 ? a >> 31 : ~difference >> 31) != 0;
  };
  const auto key_high = static_cast<std::uint32_t>(key >> 32);
  const auto pivot_high = static_cast<std::uint32_t>(pivot >> 32);
  if (key_high - pivot_high != 0) return reaches(key_high, pivot_high);
  return reaches(static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(pivot));
}

/// A bit for each pivot that the key reaches, the lowest for the first.
[[nodiscard]] constexpr std::uint32_t reached_bits(std::span<const std::uint64_t> pivots,
                                                   std::uint64_t key) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < pivots.size(); ++i) {
    bits |= std::uint32_t{reaches_by_halves(key, pivots[i])} << i;
  }
  return bits;
}

/// The way that such bits choose, ones up to some pivot and zeros behind it: how many there are.
[[nodiscard]] constexpr std::uint32_t way_of(std::uint32_t bits) {
  return static_cast<std::uint32_t>(std::countr_one(bits));
}

}  // namespace espalier::dataplane

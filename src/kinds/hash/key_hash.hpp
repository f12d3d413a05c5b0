// SPDX-License-Identifier: Apache-2.0
// The hash of a key, by a random seed of its map, and the use of its bits:
//
//   63        50 49        38 37      27 26             0
//   +------------+------------+----------+----------------+
//   | partition  | directory  | tag      | bin            |
//   +------------+------------+----------+----------------+
//
// Partitions have unequal shares of the keys, the last one twice that of the first, so that their
// segments do not all split at the same time. An attacker who knows the seed can make keys of one
// hash; only speed relies on the hash, nothing else (docs/design/hash.md).
//
// Thread: safe, no state.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/bytes.hpp"
#include "base/random.hpp"
#include "kinds/hash/format.hpp"

namespace espalier::hash {

struct HashSeed {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

namespace detail {

/// Folds the product: exclusive or of its halves.
[[nodiscard]] constexpr std::uint64_t folded_product(std::uint64_t x, std::uint64_t y) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{x} * y;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

}  // namespace detail

/// Requires: the key is not empty. Cost: two multiplications for each 16 bytes, and two more.
[[nodiscard]] inline std::uint64_t hash_key(std::string_view key, const HashSeed& seed) noexcept {
  using base::load_le;
  constexpr std::uint64_t kLengths = 0x9e37'79b9'7f4a'7c15;
  const char* at = key.data();
  std::size_t left = key.size();
  std::uint64_t hash = seed.first ^ left * kLengths;
  for (; left > 16; at += 16, left -= 16) {
    hash = detail::folded_product(load_le<std::uint64_t>(at) ^ seed.second,
                                  load_le<std::uint64_t>(at + 8) ^ hash);
  }
  // 1 to 16 bytes: two loads, which overlap in most cases.
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  if (left >= 8) {
    first = load_le<std::uint64_t>(at);
    last = load_le<std::uint64_t>(at + left - 8);
  } else if (left >= 4) {
    first = load_le<std::uint32_t>(at);
    last = load_le<std::uint32_t>(at + left - 4);
  } else {
    const auto byte = [&](std::size_t i) {
      return std::uint64_t{static_cast<unsigned char>(at[i])};
    };
    first = byte(0) | byte(left / 2) << 8 | byte(left - 1) << 16;
  }
  hash = detail::folded_product(first ^ seed.second, last ^ hash);
  return base::mix64(hash ^ seed.first);
}

/// A hash, by its parts.
class KeyHash {
 public:
  /// `partition_bits`: the logarithm of the number of partitions.
  constexpr KeyHash(std::uint64_t bits, std::uint32_t partition_bits)
      : bits_(bits), partition_bits_(partition_bits) {}

  [[nodiscard]] constexpr std::uint64_t bits() const { return bits_; }
  [[nodiscard]] constexpr std::uint32_t partition() const {
    // log2(1 + x) for x from 0 to 1, by a parabola.
    const std::uint64_t at = bits_ >> kDirectoryEnd;
    const std::uint64_t above = at * ((std::uint64_t{1} << kPartitionPart) - at) >> kPartitionPart;
    const std::uint64_t along = at + (above * kBend >> kPartitionPart);
    return static_cast<std::uint32_t>(along >> (kPartitionPart - partition_bits_));
  }
  /// The first `depth` bits of the directory's part.
  [[nodiscard]] constexpr std::uint32_t prefix(std::uint32_t depth) const {
    return static_cast<std::uint32_t>((bits_ << kPartitionPart) >> 1 >> (63 - depth));
  }
  /// The bit of the directory's part behind the first `depth`.
  [[nodiscard]] constexpr bool bit_at(std::uint32_t depth) const {
    return ((bits_ << kPartitionPart) >> (63 - depth) & 1) != 0;
  }
  /// A number for each hash that sorts those of one partition in the order of its directory.
  [[nodiscard]] constexpr std::uint64_t order() const { return std::rotl(bits_, kPartitionPart); }
  /// The inverse of order().
  [[nodiscard]] static constexpr KeyHash of_order(std::uint64_t order,
                                                  std::uint32_t partition_bits) {
    return {std::rotr(order, kPartitionPart), partition_bits};
  }
  /// Never 0.
  [[nodiscard]] constexpr std::uint64_t tag() const {
    const std::uint64_t tag = bits_ >> 27 & Slot::kTagMask;
    return tag == 0 ? 1 : tag;
  }
  [[nodiscard]] constexpr std::uint32_t bin() const {
    const std::uint64_t low = bits_ << 5 & 0xFFFF'FFFF;
    return static_cast<std::uint32_t>(low * kBinsPerSegment >> 32);
  }

 private:
  static constexpr int kPartitionPart = 14;  // bits
  static constexpr int kDirectoryEnd = 64 - kPartitionPart;
  static constexpr std::uint64_t kBend = 5652;  // 0.345 of 2^14

  std::uint64_t bits_;
  std::uint32_t partition_bits_;
};

}  // namespace espalier::hash

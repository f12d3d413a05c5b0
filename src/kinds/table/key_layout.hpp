// SPDX-License-Identifier: Apache-2.0
// The key of a result's row: its first columns and their null bits. Compared and hashed as bytes,
// so rows must be canonical: zeros where nothing is, one NaN, one zero.
//
// Hashes depend on a seed, so that no client can choose keys that collide.
//
// Thread: immutable; safe to use from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/random.hpp"
#include "kinds/table/schema.hpp"
#include "kinds/table/wide.hpp"

namespace espalier::table {

/// Hashes words by one multiplication each, whose halves meet. Which words hashes of one seed share
/// cannot be told without it; but bits of a hash by themselves are no better than a product's, and
/// so some of them are taken by tag_of().
class KeyHash {
 public:
  explicit KeyHash(std::uint64_t seed) : seed_(seed), factor_(base::mix64(seed) | 1) {}

  /// 32 bits that all lower ones of a hash have reached. Its own would not do: under one seed of a
  /// hundred, keys at the same distance from each other meet there.
  [[nodiscard]] static std::uint32_t tag_of(std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash * 0x9e37'79b9'7f4a'7c15 >> 32);
  }

  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  [[nodiscard]] std::uint64_t of(std::uint64_t word) const { return fold(seed_, word); }
  [[nodiscard]] std::uint64_t of(std::uint64_t first, std::uint64_t second) const {
    return fold(of(first), second);
  }
  /// Of what was hashed before, and one more word.
  [[nodiscard]] std::uint64_t fold(std::uint64_t hash, std::uint64_t word) const {
    const UnsignedWide product = UnsignedWide{hash ^ word} * factor_;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }

 private:
  std::uint64_t seed_;
  std::uint64_t factor_;
};

/// Where the key of a row lies: its first columns and their null bits.
struct KeyLayout {
  std::uint32_t row_bytes = 0;
  std::uint32_t key_bytes = 0;    ///< from the row's begin
  std::uint32_t null_offset = 0;  ///< of null bits that belong to the key
  std::uint32_t null_bytes = 0;
  std::uint8_t last_mask = 0;  ///< of these, in the last byte

  /// Of the first `key_columns` columns.
  static KeyLayout of(const Schema& schema, std::size_t key_columns);
  [[nodiscard]] bool equal(const std::byte* a, const std::byte* b) const;
  [[nodiscard]] std::uint64_t hash(const std::byte* row, const KeyHash& hash) const;

  /// How many words of 8 bytes hold the key by themselves: 1 or 2, or 0 where they do not.
  [[nodiscard]] std::uint32_t words() const {
    return null_bytes != 0 || key_bytes == 0 || key_bytes > 16 ? 0 : (key_bytes + 7) / 8;
  }
};

/// Up to 8 bytes as a number, zeros above.
[[nodiscard]] inline std::uint64_t load_key_word(const std::byte* at, std::size_t bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, bytes);
  return word;
}

}  // namespace espalier::table

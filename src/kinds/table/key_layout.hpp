// SPDX-License-Identifier: Apache-2.0
// The key of a result's row: its first columns and their null bits. Keys are compared and hashed as
// bytes, so rows must be canonical: zeros in unused bytes, one NaN, one zero.
//
// Hashes are seeded, so that no client can choose colliding keys.
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

/// Multiplicative hash: one multiplication for each word, whose halves are folded. Without the seed
/// collisions cannot be predicted. Single bits of a hash are no better than a product's; tag_of()
/// mixes them.
class KeyHash {
 public:
  explicit KeyHash(std::uint64_t seed) : seed_(seed), factor_(base::mix64(seed) | 1) {}

  /// A 32-bit tag that depends on all lower bits of a hash. Its own lower bits would not do: under
  /// one seed of a hundred, keys at equal distances collide there.
  [[nodiscard]] static std::uint32_t tag_of(std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash * 0x9e37'79b9'7f4a'7c15 >> 32);
  }

  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  [[nodiscard]] std::uint64_t of(std::uint64_t word) const { return fold(seed_, word); }
  [[nodiscard]] std::uint64_t of(std::uint64_t first, std::uint64_t second) const {
    return fold(of(first), second);
  }
  /// Extends a hash by one more word.
  [[nodiscard]] std::uint64_t fold(std::uint64_t hash, std::uint64_t word) const {
    const UnsignedWide product = UnsignedWide{hash ^ word} * factor_;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }

 private:
  std::uint64_t seed_;
  std::uint64_t factor_;
};

/// Layout of the key of a row: its first columns and their null bits.
struct KeyLayout {
  std::uint32_t row_bytes = 0;
  std::uint32_t key_bytes = 0;    ///< from the row's begin
  std::uint32_t null_offset = 0;  ///< of null bits that belong to the key
  std::uint32_t null_bytes = 0;
  std::uint8_t last_mask = 0;  ///< of these, in the last byte

  /// Layout of the first `key_columns` columns.
  static KeyLayout of(const Schema& schema, std::size_t key_columns);
  [[nodiscard]] bool equal(const std::byte* a, const std::byte* b) const;
  [[nodiscard]] std::uint64_t hash(const std::byte* row, const KeyHash& hash) const;

  /// Number of 8-byte words that contain exactly the key: 1 or 2, or 0 if they do not.
  [[nodiscard]] std::uint32_t words() const {
    return null_bytes != 0 || key_bytes == 0 || key_bytes > 16 ? 0 : (key_bytes + 7) / 8;
  }
};

/// Up to 8 bytes as a number, zero-extended.
[[nodiscard]] inline std::uint64_t load_key_word(const std::byte* at, std::size_t bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, bytes);
  return word;
}

}  // namespace espalier::table

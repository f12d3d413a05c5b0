// SPDX-License-Identifier: Apache-2.0
// The hash with which benchmarks consume every byte of their answers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace espalier::bench {

inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio

/// Both halves of a 128-bit product, folded: one multiplication takes in 16 bytes.
inline std::uint64_t fold_multiply(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// Strings of 8 to 16 bytes are two words, which may overlap.
struct TwoWords {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  [[nodiscard]] static bool holds(std::string_view bytes) { return bytes.size() - 8 <= 8; }
  /// Requires: holds(bytes).
  [[nodiscard]] static TwoWords of(std::string_view bytes) {
    TwoWords words;
    std::memcpy(&words.first, bytes.data(), 8);
    std::memcpy(&words.last, bytes.data() + bytes.size() - 8, 8);
    return words;
  }
};

/// Spreads lengths far apart.
inline std::uint64_t length_hash(std::size_t length) {
  return (kGolden ^ length) * 0xd1342543de82ef95;
}

/// A hash that reads every byte once, at about 0.4 ns for 16 bytes. Not for hostile input.
inline std::uint64_t bytes_hash(std::string_view bytes) {
  if (TwoWords::holds(bytes)) [[likely]] {
    const TwoWords words = TwoWords::of(bytes);
    return fold_multiply(words.first ^ length_hash(bytes.size()), words.last ^ 0x8bb84b93962eacc9);
  }
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t hash = length_hash(left);
  while (left >= 16) {
    std::uint64_t words[2];
    std::memcpy(words, at, 16);
    hash = fold_multiply(words[0] ^ hash, words[1] ^ 0x8bb84b93962eacc9);
    at += 16;
    left -= 16;
  }
  if (left > 0) {
    std::uint64_t words[2] = {0, 0};
    std::memcpy(words, at, left);
    hash = fold_multiply(words[0] ^ hash, words[1] ^ 0x4b33a62ed433d4a3);
  }
  return hash;
}

/// The hash of an item; short ones take one multiplication.
inline std::uint64_t item_hash(std::string_view key, std::string_view value) {
  if (TwoWords::holds(key) && TwoWords::holds(value)) [[likely]] {
    const TwoWords k = TwoWords::of(key);
    const TwoWords v = TwoWords::of(value);
    return fold_multiply(
        (k.first + std::rotl(v.last, 29)) ^ length_hash(key.size() << 8 | value.size()),
        (k.last + std::rotl(v.first, 43)) ^ 0x8bb84b93962eacc9);
  }
  return bytes_hash(key) + std::rotl(bytes_hash(value), 17);
}

}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
// A key prepared for searching: padded copy, key prefix and hash; and the comparison of keys.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/bytes.hpp"
#include "kinds/map/format/node.hpp"

namespace espalier::tree {

/// 8 bytes at `at` as a big-endian number.
[[nodiscard]] inline std::uint64_t big_endian_at(const char* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return __builtin_bswap64(word);
}

/// The first 8 bytes of `key`, zero padded, as a big-endian number: has the order of keys, up to
/// ties.
[[nodiscard]] inline std::uint64_t key_prefix_of(std::string_view key) {
  return base::load_be64_prefix(key);
}

/// One byte of hash, to distinguish log entries of different keys. Reads 8 bytes at a time; the
/// last word overlaps the one before.
[[nodiscard]] inline std::uint8_t tag_of(std::string_view key) {
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15;
  std::uint64_t hash = key.size() * kMultiplier;
  if (key.size() >= 8) {
    std::size_t at = 0;
    for (; at + 8 < key.size(); at += 8) {
      hash = (std::rotl(hash, 23) ^ big_endian_at(key.data() + at)) * kMultiplier;
    }
    hash = (std::rotl(hash, 23) ^ big_endian_at(key.data() + key.size() - 8)) * kMultiplier;
  } else {
    hash = (hash ^ key_prefix_of(key)) * kMultiplier;
  }
  return static_cast<std::uint8_t>((hash ^ (hash >> 29)) >> 24);
}

/// Compares two keys in memcmp order: < 0, 0, > 0. Requires: both have `equal_bytes` bytes, which
/// are equal.
[[nodiscard]] inline int compare_keys(std::string_view a, std::string_view b,
                                      std::size_t equal_bytes = 0) {
  const std::size_t common = a.size() < b.size() ? a.size() : b.size();
  if (common >= equal_bytes + 8) {
    const std::uint64_t x = big_endian_at(a.data() + equal_bytes);
    const std::uint64_t y = big_endian_at(b.data() + equal_bytes);
    if (x != y) return x < y ? -1 : 1;
    if (common <= equal_bytes + 16) {  // the rest fits one overlapping word
      const std::uint64_t v = big_endian_at(a.data() + common - 8);
      const std::uint64_t w = big_endian_at(b.data() + common - 8);
      if (v != w) return v < w ? -1 : 1;
    } else if (const int order = std::memcmp(a.data() + equal_bytes + 8, b.data() + equal_bytes + 8,
                                             common - equal_bytes - 8);
               order != 0) {
      return order;
    }
  } else if (common > equal_bytes) {
    if (const int order =
            std::memcmp(a.data() + equal_bytes, b.data() + equal_bytes, common - equal_bytes);
        order != 0) {
      return order;
    }
  }
  return a.size() == b.size() ? 0 : (a.size() < b.size() ? -1 : 1);
}

/// Compares two keys whose first 8 bytes, zero padded, are equal.
[[nodiscard]] inline int compare_same_head(std::string_view a, std::string_view b) {
  // If one key ends there, the rest of the other is zeros: the length decides.
  if (a.size() <= 8 || b.size() <= 8)
    return a.size() == b.size() ? 0 : (a.size() < b.size() ? -1 : 1);
  return compare_keys(a, b, 8);
}

/// Whether two keys are equal. Cheaper than compare_keys() for short ones.
[[nodiscard]] inline bool same_key(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  if (a.size() >= 8 && a.size() <= 16) {
    return (big_endian_at(a.data()) == big_endian_at(b.data())) &
           (big_endian_at(a.data() + a.size() - 8) == big_endian_at(b.data() + b.size() - 8));
  }
  return a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0;
}

/// A copy of a key, with 8 readable zero bytes behind its end.
class SearchKey {
 public:
  SearchKey() { std::memset(data_, 0, 8); }  // the rest is written before it is read
  /// Requires: key.size() <= kKeyBytesMax + 1 (one more than a key: the successor of a key).
  void assign(std::string_view key) {
    // The words come from `key` itself: loading bytes just stored would stall.
    const char* const at = key.data();
    bytes_ = static_cast<std::uint32_t>(key.size());
    if (bytes_ >= 8) [[likely]] {
      first_ = word_at(at);
      last_ = word_at(at + bytes_ - 8);
      if (bytes_ > 16) copy_middle(at);
      std::memcpy(data_, &first_, 8);
      std::memcpy(data_ + bytes_ - 8, &last_, 8);
    } else {
      first_ = last_ = __builtin_bswap64(key_prefix_of(key));
      std::memcpy(data_, &first_, 8);
    }
    std::memset(data_ + bytes_, 0, 8);
  }
  /// Assigns the smallest key above `key`: `key` with a zero byte appended.
  void assign_successor(std::string_view key) {
    assign(key);
    ++bytes_;
    last_ = bytes_ > 8 ? last_ >> 8 : first_;
    std::memset(data_ + bytes_, 0, 8);
  }
  [[nodiscard]] std::string_view view() const { return {data_, bytes_}; }
  [[nodiscard]] std::uint32_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t prefix() const { return __builtin_bswap64(first_); }
  /// The last 8 bytes as a big-endian number. Requires: bytes() >= 8.
  [[nodiscard]] std::uint64_t tail() const { return __builtin_bswap64(last_); }
  [[nodiscard]] std::uint8_t tag() const { return tag_of(view()); }
  /// 8 bytes after the first `prefix_bytes`, zero padded.
  [[nodiscard]] std::uint64_t head_after(std::uint32_t prefix_bytes) const {
    return big_endian_at(data_ + (prefix_bytes <= bytes_ ? prefix_bytes : bytes_));
  }
  /// Whether its first and last 8 bytes equal those of the `bytes` bytes at `at`.
  /// Requires: bytes == this->bytes() >= 8.
  [[nodiscard]] bool ends_match(const char* at, std::uint32_t bytes) const {
    return ((word_at(at) ^ first_) | (word_at(at + bytes - 8) ^ last_)) == 0;
  }
  /// Whether the key equals the `bytes` bytes at `at`. Reads no other bytes: directly behind the
  /// last item of a leaf a writer may be publishing the first entry of its log.
  [[nodiscard]] bool same_as(const char* at, std::uint32_t bytes) const {
    if (bytes != bytes_) return false;
    if (bytes < 8) [[unlikely]]
      return key_prefix_of({at, bytes}) == prefix();
    if (word_at(at) != first_) return false;
    if (word_at(at + bytes - 8) != last_) return false;
    if (bytes_ > kShortBytes) return std::memcmp(at + 8, data_ + 8, bytes_ - 16) == 0;
    std::uint64_t unlike = 0;
    for (std::uint32_t i = 8; i + 8 < bytes; i += 8) unlike |= word_at(at + i) ^ word_at(data_ + i);
    return unlike == 0;
  }

 private:
  // For keys up to this size a call of memcpy or memcmp costs more than the work itself.
  static constexpr std::uint32_t kShortBytes = 72;

  // Copies the bytes between the first and the last 8, possibly overlapping these.
  void copy_middle(const char* at) {
    if (bytes_ > kShortBytes) {
      std::memcpy(data_ + 8, at + 8, bytes_ - 16);
      return;
    }
    for (std::uint32_t i = 8; i + 8 < bytes_; i += 8) std::memcpy(data_ + i, at + i, 8);
  }
  static std::uint64_t word_at(const char* at) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    return word;
  }

  std::uint64_t first_ = 0;  // the first 8 bytes in memory order, zero padded
  std::uint64_t last_ = 0;   // the last 8
  std::uint32_t bytes_ = 0;
  char data_[wire::kKeyBytesMax + 1 + 8 + 3];
};

/// Maps 8 bytes of a key monotonically to a key prefix whose bits cover the node's own range.
struct KeyPrefixMap {
  /// Where values above the range saturate.
  static constexpr std::uint64_t kMost = 0xFFFF'FFFE'FFFF'FFFF;

  std::uint64_t base = 0;
  std::uint32_t shift = 0;

  /// The map for keys whose 8 bytes lie between first and last.
  static KeyPrefixMap covering(std::uint64_t first, std::uint64_t last) {
    const std::uint64_t range = last - first;
    return {first, static_cast<std::uint32_t>(range == 0 ? 63 : std::countl_zero(range))};
  }
  /// 64 bits, of which formats keep the first 16 or 32. Values outside the range saturate, above it
  /// at one less than all ones in 32 bits; so all ones can mark unused entries.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t word) const {
    if (word <= base) return 0;
    const std::uint64_t distance = word - base;
    return distance >= (kMost >> shift) ? kMost : distance << shift;
  }
};

}  // namespace espalier::tree

// SPDX-License-Identifier: Apache-2.0
// The keys of a benchmark: those that are loaded, and fresh ones to insert, which differ from them.
//
// Random keys are made from their index by a bijection of the first 8 bytes, so that all are
// different without a table of them. Words come from a file, shuffled, since files are sorted.
// Shaped keys are made from numbers, as programs make theirs: many share a prefix, and some ascend.
//
// Thread: const calls from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/huge_memory.hpp"

namespace espalier::bench {

inline constexpr std::uint32_t kKeyBytesMin = 8;    // of random keys: they differ in the first 8
inline constexpr std::uint32_t kKeyBytesMax = 460;  // of any key

class KeySet {
 public:
  /// Makes `count` random keys. Requires: kKeyBytesMin <= key_bytes <= kKeyBytesMax.
  static KeySet random(std::uint64_t count, std::uint32_t key_bytes, std::uint64_t seed);

  /// Reads one key per line, at most `count_max` different ones (0: all). Skips lines that are
  /// empty or too long. Errors: throws std::runtime_error if the file cannot be read.
  static KeySet from_file(const std::string& path, std::uint64_t count_max, std::uint64_t seed);

  /// Writes the key of a number; different for all numbers below 10^12.
  using Shape = void (*)(std::uint64_t number, std::string& out);
  /// Keys of the numbers below `count`, shuffled; fresh ones continue from there.
  static KeySet of_shape(std::uint64_t count, Shape shape, std::uint64_t seed);
  /// The same in order.
  static KeySet in_order(std::uint64_t count, Shape shape);

  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Length of every key, or 0 if lengths differ.
  [[nodiscard]] std::uint32_t fixed_bytes() const { return fixed_bytes_; }

  /// Mean length of keys.
  [[nodiscard]] double mean_key_bytes() const;

  /// Key `i` in load order, which is random. Requires: i < size().
  [[nodiscard]] std::string_view key(std::uint64_t i) const;

  /// Writes a key that is not in the set into `out`; different for each `i`.
  void fresh(std::uint64_t i, std::string& out) const;

  /// Load-order indices in the order of the keys. Cost: sorts at construction.
  [[nodiscard]] const std::vector<std::uint32_t>& sorted() const { return sorted_; }
  /// The key of this rank in key order.
  [[nodiscard]] std::string_view key_of_rank(std::uint64_t rank) const {
    return key(sorted_[rank]);
  }

 private:
  KeySet() = default;
  void sort();
  void take(const std::vector<std::string>& keys);
  void random_key(std::uint64_t i, char* out) const;
  [[nodiscard]] bool contains(std::string_view key) const;

  std::uint64_t size_ = 0;
  std::uint64_t seed_ = 0;
  std::uint32_t fixed_bytes_ = 0;
  Shape shape_ = nullptr;               // null: none
  HugeBuffer bytes_;                    // all keys in load order, without separators
  std::vector<std::uint64_t> offsets_;  // size() + 1 of them if lengths differ
  std::vector<std::uint32_t> sorted_;
};

// Shapes: "user000000000042", "user:000000000042", and URLs of 64 bytes.
void integer_key(std::uint64_t number, std::string& out);
void prefix_key(std::uint64_t number, std::string& out);
void url_key(std::uint64_t number, std::string& out);

/// The length of values.
struct ValueLength {
  std::uint32_t bytes = 16;
  bool drawn = false;  ///< each at random, uniformly from 0 to `bytes`
};

/// Fills `out` with the value of the `round`-th write of key `key_id`.
void make_value(std::uint64_t key_id, std::uint64_t round, ValueLength length, std::string& out);

}  // namespace espalier::bench

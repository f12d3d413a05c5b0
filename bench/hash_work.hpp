// SPDX-License-Identifier: Apache-2.0
// Pairs and requests of `espalier-bench hash`: keys of 16 bytes of text, which every peer takes,
// and values of 48, always the same for each key, so that answers do not depend on the order of
// requests.
//
// Thread: const calls from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "bench/request_list.hpp"

namespace espalier::bench {

inline constexpr std::size_t kHashKeyBytes = 16;
inline constexpr std::size_t kHashValueBytes = 48;

class HashPairs {
 public:
  using Key = std::array<char, kHashKeyBytes>;
  using Value = std::array<char, kHashValueBytes>;

  HashPairs(std::uint64_t count, std::uint64_t seed) : count_(count), seed_(seed) {}

  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// All different.
  [[nodiscard]] Key key(std::uint64_t i) const;
  [[nodiscard]] Value value(std::uint64_t i) const;

 private:
  std::uint64_t count_;
  std::uint64_t seed_;
};

enum class HashDraw : std::uint8_t { uniform, zipfian };

[[nodiscard]] std::string_view name(HashDraw draw);

/// The skew of RAMBDA's requests.
inline constexpr double kHashTheta = 0.9;

/// The mix of requests at a point.
struct HashMix {
  HashDraw draw = HashDraw::uniform;
  std::uint32_t gets_percent = 100;  ///< the rest are puts of existing keys
};

[[nodiscard]] RequestList make_hash_requests(const HashPairs& pairs, const HashMix& mix,
                                             std::uint64_t ops, std::uint64_t seed);

/// The sum of answers.
struct HashAnswers {
  std::uint64_t found = 0;
  std::uint64_t put = 0;
  std::uint64_t failed = 0;
  std::uint64_t sum = 0;  ///< of all bytes of values, by words

  void value(std::string_view bytes) {
    ++found;
    std::uint64_t word = 0;
    for (std::size_t at = 0; at + sizeof word <= bytes.size(); at += sizeof word) {
      std::memcpy(&word, bytes.data() + at, sizeof word);
      sum += word;
    }
  }
  [[nodiscard]] std::uint64_t checksum() const {
    return sum + found * 0x9e37'79b9'7f4a'7c15 + put * 0xbf58'476d'1ce4'e5b9 - failed;
  }
};

}  // namespace espalier::bench

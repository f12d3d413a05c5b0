// SPDX-License-Identifier: Apache-2.0
// The measurements of `espalier-bench memory`, one function each.
//
// Each repeats its work until `seconds` have passed, at least once. Checksums are returned, so that
// no load can be optimised away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/prefetch.hpp"
#include "bench/huge_memory.hpp"

namespace espalier::bench {

inline constexpr std::size_t kLineBytes = 64;

/// A block in which each cache line holds the number of the next one, all in one cycle of random
/// order. Cost: two writes for each line.
class ChaseBlock {
 public:
  /// Requires: bytes >= 2 * kLineBytes.
  ChaseBlock(std::size_t bytes, std::uint64_t seed);

  [[nodiscard]] std::size_t lines() const { return lines_; }
  [[nodiscard]] std::uint64_t next(std::uint64_t line) const {
    return words_[line * kWordsPerLine];
  }
  /// Prefetches a line.
  void prefetch(std::uint64_t line) const { base::prefetch_line(words_ + line * kWordsPerLine); }

 private:
  static constexpr std::size_t kWordsPerLine = kLineBytes / sizeof(std::uint64_t);
  HugeBuffer memory_;
  std::size_t lines_;
  std::uint64_t* words_;
};

struct ChaseResult {
  double lines_per_s = 0;
  double ns_per_line = 0;  ///< of one chain
  std::uint64_t checksum = 0;
};

inline constexpr std::uint32_t kChainsMax = 64;

/// Follows `chains` independent chains in turns. Requires: 1 <= chains <= kChainsMax, a power of 2.
ChaseResult chase(const ChaseBlock& block, std::uint32_t chains, double seconds);

struct BandwidthResult {
  double bytes_per_s = 0;
  std::uint64_t checksum = 0;
};

/// Reads the block from end to end.
BandwidthResult read_sequentially(const HugeBuffer& block, double seconds);
/// Copies one half of the block to the other; counts bytes read plus bytes written.
BandwidthResult copy_sequentially(const HugeBuffer& block, double seconds);

}  // namespace espalier::bench

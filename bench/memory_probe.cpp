// SPDX-License-Identifier: Apache-2.0
#include "bench/memory_probe.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kStepsPerCheck = 4096;  // between readings of the clock

// Chains are variables in registers or on the stack, and their number is known at compile time: a
// loop over an array of unknown length would be part of the measurement.
template <std::size_t kChains>
ChaseResult chase_chains(const ChaseBlock& block, double seconds) {
  std::array<std::uint64_t, kChains> at;
  for (std::size_t i = 0; i < kChains; ++i) at[i] = block.lines() * i / kChains;
  std::uint64_t steps = 0;
  const base::Stopwatch watch;
  double elapsed = 0;
  do {
    for (std::uint64_t step = 0; step < kStepsPerCheck; ++step) {
      for (std::uint64_t& line : at) line = block.next(line);
    }
    steps += kStepsPerCheck;
    elapsed = static_cast<double>(watch.elapsed_ns()) * 1e-9;
  } while (elapsed < seconds);
  ChaseResult result;
  result.lines_per_s = static_cast<double>(steps * kChains) / elapsed;
  result.ns_per_line = elapsed * 1e9 / static_cast<double>(steps);
  result.checksum = std::accumulate(at.begin(), at.end(), std::uint64_t{0});
  return result;
}

template <class Pass>
BandwidthResult repeat(double seconds, std::size_t bytes_per_pass, Pass pass) {
  BandwidthResult result;
  std::uint64_t passes = 0;
  const base::Stopwatch watch;
  double elapsed = 0;
  do {
    result.checksum += pass();
    ++passes;
    elapsed = static_cast<double>(watch.elapsed_ns()) * 1e-9;
  } while (elapsed < seconds);
  result.bytes_per_s = static_cast<double>(passes * bytes_per_pass) / elapsed;
  return result;
}

}  // namespace

ChaseBlock::ChaseBlock(std::size_t bytes, std::uint64_t seed)
    : memory_(bytes),
      lines_(bytes / kLineBytes),
      words_(reinterpret_cast<std::uint64_t*>(memory_.data())) {
  ESPALIER_ASSERT(lines_ >= 2);
  // Sattolo's shuffle of the identity gives a permutation of one cycle.
  for (std::uint64_t i = 0; i < lines_; ++i) words_[i * kWordsPerLine] = i;
  base::Random random(seed);
  for (std::uint64_t i = lines_ - 1; i > 0; --i) {
    std::swap(words_[i * kWordsPerLine], words_[random.below(i) * kWordsPerLine]);
  }
}

ChaseResult chase(const ChaseBlock& block, std::uint32_t chains, double seconds) {
  ESPALIER_ASSERT(chains <= kChainsMax && std::has_single_bit(chains));
  switch (chains) {
    case 1: return chase_chains<1>(block, seconds);
    case 2: return chase_chains<2>(block, seconds);
    case 4: return chase_chains<4>(block, seconds);
    case 8: return chase_chains<8>(block, seconds);
    case 16: return chase_chains<16>(block, seconds);
    case 32: return chase_chains<32>(block, seconds);
    default: return chase_chains<64>(block, seconds);
  }
}

BandwidthResult read_sequentially(const HugeBuffer& block, double seconds) {
  return repeat(seconds, block.bytes(), [&block] {
    constexpr std::size_t kSums = 16;  // independent, and enough of them for vector instructions
    std::array<std::uint64_t, kSums> sums{};
    for (std::size_t at = 0; at < block.bytes(); at += sizeof sums) {
      std::array<std::uint64_t, kSums> words;
      std::memcpy(words.data(), block.data() + at, sizeof words);
      for (std::size_t i = 0; i < kSums; ++i) sums[i] += words[i];
    }
    return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
  });
}

BandwidthResult copy_sequentially(const HugeBuffer& block, double seconds) {
  const std::size_t half = block.bytes() / 2;
  return repeat(seconds, half * 2, [&block, half] {
    std::memcpy(block.data() + half, block.data(), half);
    std::uint64_t last = 0;
    std::memcpy(&last, block.data() + 2 * half - sizeof last, sizeof last);
    return last;
  });
}

}  // namespace espalier::bench

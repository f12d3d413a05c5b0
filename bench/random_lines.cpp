// SPDX-License-Identifier: Apache-2.0
#include "bench/random_lines.hpp"

#include <cstring>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "bench/huge_memory.hpp"

namespace espalier::bench {
namespace {

constexpr std::size_t kRandomLineBytes = 64;

struct LinePass {
  double lines_per_s = 0;
  std::uint64_t checksum = 0;
};

/// `kHint`: as of __builtin_prefetch.
template <int kHint>
LinePass read_random_lines(const std::byte* block, std::uint64_t lines, std::uint32_t distance,
                           double seconds, std::uint64_t seed) {
  constexpr std::uint64_t kTogether = 4096;
  const auto line_at = [&](std::uint64_t i) {
    return block + base::scale(base::mix64(i + seed), lines) * kRandomLineBytes;
  };
  LinePass pass;
  std::uint64_t read = 0;
  const base::Stopwatch watch;
  double elapsed = 0;
  do {
    for (const std::uint64_t end = read + kTogether; read != end; ++read) {
      __builtin_prefetch(line_at(read + distance), 0, kHint);
      std::uint64_t word = 0;
      std::memcpy(&word, line_at(read), sizeof word);
      pass.checksum += word;
    }
    elapsed = static_cast<double>(watch.elapsed_ns()) * 1e-9;
  } while (elapsed < seconds);
  pass.lines_per_s = static_cast<double>(read) / elapsed;
  return pass;
}

}  // namespace

RandomLineRate random_line_rate(std::size_t bytes, double seconds, std::uint64_t seed) {
  ESPALIER_ASSERT(bytes >= kRandomLineBytes);
  const HugeBuffer block(bytes);
  std::memset(block.data(), 1, block.bytes());
  const std::uint64_t lines = bytes / kRandomLineBytes;
  RandomLineRate best;
  for (const bool to_l2 : {false, true}) {
    for (const std::uint32_t distance : {8u, 16u, 32u, 64u}) {
      const LinePass pass =
          to_l2 ? read_random_lines<2>(block.data(), lines, distance, seconds, seed)
                : read_random_lines<3>(block.data(), lines, distance, seconds, seed);
      best.checksum += pass.checksum;
      if (pass.lines_per_s <= best.lines_per_s) continue;
      best.lines_per_s = pass.lines_per_s;
      best.distance = distance;
      best.to_l2 = to_l2;
    }
  }
  return best;
}

}  // namespace espalier::bench

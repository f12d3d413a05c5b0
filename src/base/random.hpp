// SPDX-License-Identifier: Apache-2.0
// Random numbers that one seed repeats, on every machine and with every compiler.
//
// `Random` is xoshiro256** [Blackman and Vigna, Scrambled linear pseudorandom number generators],
// its state filled by SplitMix64 so that any seed will do, 0 too. The distributions of <random> are
// not used, since each standard library draws them in its own way. Not for secrets.
//
// Thread: one generator belongs to one thread; `fork` makes more.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "base/assert.hpp"

namespace espalier::base {

/// Spreads the bits of a number over all 64. A bijection: equal results mean equal arguments.
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Steps a SplitMix64 generator and draws from it.
[[nodiscard]] constexpr std::uint64_t splitmix64(std::uint64_t& state) noexcept {
  state += 0x9e3779b97f4a7c15;
  return mix64(state);
}

/// The upper 64 bits of the product: maps a random `x` to 0 <= result < n, with a bias of n / 2^64.
[[nodiscard]] constexpr std::uint64_t scale(std::uint64_t x, std::uint64_t n) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{x} * n) >> 64);
}

/// A stream of random numbers. Fits where the standard library asks for a
/// uniform_random_bit_generator, std::shuffle for one (whose result differs between libraries).
class Random {
 public:
  using result_type = std::uint64_t;

  explicit constexpr Random(std::uint64_t seed) noexcept {
    for (std::uint64_t& word : state_) word = splitmix64(seed);
  }

  static constexpr result_type min() noexcept { return 0; }
  static constexpr result_type max() noexcept { return std::numeric_limits<result_type>::max(); }

  /// Draws 64 bits.
  constexpr std::uint64_t operator()() noexcept {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// Draws 0 <= result < n, all equally likely. Requires: n is not 0.
  /// Cost: one multiplication; seldom a division. Source: [Lemire, Fast random integer generation
  /// in an interval].
  constexpr std::uint64_t below(std::uint64_t n) noexcept {
    ESPALIER_ASSERT(n != 0);
    std::uint64_t x = (*this)();
    if (x * n < n) [[unlikely]] {
      // The first 2^64 mod n products of each result are one too many.
      const std::uint64_t surplus = (0 - n) % n;
      while (x * n < surplus) x = (*this)();
    }
    return scale(x, n);
  }

  /// Draws low <= result <= high. Requires: low <= high.
  constexpr std::uint64_t between(std::uint64_t low, std::uint64_t high) noexcept {
    ESPALIER_ASSERT(low <= high);
    const std::uint64_t count = high - low + 1;
    return count == 0 ? (*this)() : low + below(count);
  }

  /// Draws 0 <= result < 1 in steps of 2^-53.
  constexpr double unit() noexcept { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

  /// Is true with this probability.
  constexpr bool chance(double probability) noexcept { return unit() < probability; }

  /// Fills memory with random bytes, the same for the same seed on machines of any byte order.
  void fill(std::span<std::byte> bytes) noexcept;

  /// Makes a generator whose stream is independent of this one's: one for each thread.
  [[nodiscard]] constexpr Random fork() noexcept { return Random((*this)()); }

 private:
  std::uint64_t state_[4];
};

/// The seed that ESPALIER_SEED names (decimal, or hexadecimal after 0x), else `otherwise`. Says on
/// standard error which one it is, so that a failed run can be repeated.
/// Thread: safe as long as no thread changes the environment.
[[nodiscard]] std::uint64_t seed_from_environment(std::uint64_t otherwise);

}  // namespace espalier::base

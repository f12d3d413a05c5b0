// SPDX-License-Identifier: Apache-2.0
// Finds the last of sixteen ascending numbers that a key reaches: one step down a 16-way tree, be
// it a node of a set or the fat root. All forms are branch-free: plain C++ halves the sixteen four
// times, vectors compare the key with all of them in parallel.
//
// An inlining caller must be compiled for the form's instructions: by its ESPALIER_LOWS_... target.
//
// Thread: pure functions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#define ESPALIER_HAVE_X86_LOWS 1
#define ESPALIER_LOWS_AVX2 __attribute__((target("avx2,popcnt")))
#define ESPALIER_LOWS_AVX512 __attribute__((target("avx512f,popcnt")))
#endif

namespace espalier::dataplane {

/// Numbers that are searched together. They ascend, and the first one is at or below each key that
/// is looked for.
inline constexpr std::size_t kLowsTogether = 16;

struct PlainLows {
  static std::uint32_t last_reached(const std::uint64_t* lows, std::uint64_t key) {
    std::uint32_t at = 0;
    for (std::uint32_t half = kLowsTogether / 2; half != 0; half /= 2) {
      // No branch, which would be guessed wrong every other time: a `?:` may become one.
      at += half & (0u - static_cast<std::uint32_t>(lows[at + half] <= key));
    }
    return at;
  }
};

#if defined(ESPALIER_HAVE_X86_LOWS)

struct Avx2Lows {
  // Vectors of this set compare with signs: with the highest bit turned the order is the same.
  ESPALIER_LOWS_AVX2 static std::uint32_t last_reached(const std::uint64_t* lows,
                                                       std::uint64_t key) {
    const __m256i turn = _mm256_set1_epi64x(INT64_MIN);
    const __m256i wanted = _mm256_xor_si256(_mm256_set1_epi64x(static_cast<long long>(key)), turn);
    unsigned above = 0;
    for (unsigned i = 0; i < kLowsTogether; i += 4) {
      const auto* const at = reinterpret_cast<const __m256i*>(lows + i);
      const __m256i some = _mm256_xor_si256(_mm256_loadu_si256(at), turn);
      const __m256d beyond = _mm256_castsi256_pd(_mm256_cmpgt_epi64(some, wanted));
      above |= static_cast<unsigned>(_mm256_movemask_pd(beyond)) << i;
    }
    return static_cast<std::uint32_t>(15 - std::popcount(above));
  }
};

struct Avx512Lows {
  ESPALIER_LOWS_AVX512 static std::uint32_t last_reached(const std::uint64_t* lows,
                                                         std::uint64_t key) {
    const __m512i wanted = _mm512_set1_epi64(static_cast<long long>(key));
    const __mmask8 low = _mm512_cmple_epu64_mask(_mm512_loadu_si512(lows), wanted);
    const __mmask8 high = _mm512_cmple_epu64_mask(_mm512_loadu_si512(lows + 8), wanted);
    const unsigned reached = _mm512_kunpackb(high, low);
    return static_cast<std::uint32_t>(std::popcount(reached) - 1);
  }
};

#endif

}  // namespace espalier::dataplane

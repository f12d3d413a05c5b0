// SPDX-License-Identifier: Apache-2.0
// The search kernels, one type per instruction set, so that hot code can be compiled with a kit
// inlined (host/group.hpp); all other code calls through the pointers of a SearchKit.
//
// Code that uses a kit in line must itself be compiled for the kit's instructions: put the
// function that everything is inlined into under ESPALIER_TARGET_AVX2 or ESPALIER_TARGET_AVX512.
#pragma once

#include <bit>
#include <cstring>

#include "base/atomic_bytes.hpp"
#include "kinds/map/node/search.hpp"

#if defined(__SANITIZE_THREAD__)
#define ESPALIER_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ESPALIER_THREAD_SANITIZER 1
#endif
#endif

#if defined(__x86_64__) && !defined(ESPALIER_THREAD_SANITIZER)
#include <immintrin.h>
#define ESPALIER_HAVE_X86_KITS 1
#define ESPALIER_TARGET_AVX2 __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))
#define ESPALIER_TARGET_AVX512 \
  __attribute__((target("avx2,avx512f,avx512bw,avx512vl,bmi,bmi2,lzcnt,popcnt")))
#endif

namespace espalier::tree {

/// Plain C++: the oracle for the others.
struct ScalarKit {
  static constexpr const char* kName = "scalar";

  static Rank rank16(const std::byte* key_prefixes, std::uint32_t count, std::uint16_t head) {
    Rank rank;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto other = base::load_plain<std::uint16_t>(key_prefixes + 2 * i);
      rank.below += other < head ? 1 : 0;
      rank.below_or_equal += other <= head ? 1 : 0;
    }
    return rank;
  }

  static Rank rank32(const std::byte* key_prefixes, std::uint32_t head) {
    Rank rank;
    for (std::uint32_t i = 0; i < 16; ++i) {
      const auto other = base::load_plain<std::uint32_t>(key_prefixes + 4 * i);
      rank.below += other < head ? 1 : 0;
      rank.below_or_equal += other <= head ? 1 : 0;
    }
    return rank;
  }

  // Slots are written concurrently, so the scalar form reads them as atomics. A vector load is not
  // atomic in C++ terms; on machines with these instructions each 16-bit lane is still read whole,
  // which suffices: a slot that matters was complete before.
  static std::uint64_t match_tags(const std::byte* slots, std::uint32_t count, std::uint8_t tag) {
    std::uint64_t mask = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto slot = base::load_shared<std::uint16_t>(slots + 2 * i);
      mask |= std::uint64_t{(slot >> 8) == tag ? 1u : 0u} << i;
    }
    return mask;
  }
};

#if defined(ESPALIER_HAVE_X86_KITS)

struct Avx2Kit {
  static constexpr const char* kName = "avx2";

  ESPALIER_TARGET_AVX2 static Rank rank16(const std::byte* key_prefixes, std::uint32_t count,
                                          std::uint16_t head) {
    const __m256i limit = _mm256_set1_epi16(static_cast<short>(head));
    std::uint32_t below = 0;
    std::uint32_t at_most = 0;
    for (std::uint32_t i = 0; i < count; i += 16) {  // two bits of movemask per key prefix
      const __m256i lanes = load(key_prefixes + std::size_t{2} * i);
      const std::uint32_t left = count - i;
      const std::uint32_t valid = left >= 16 ? ~0u : (1u << (2 * left)) - 1;
      const __m256i le = _mm256_cmpeq_epi16(_mm256_min_epu16(lanes, limit), lanes);
      const std::uint32_t le_bits = bits_of(le) & valid;
      at_most += static_cast<std::uint32_t>(std::popcount(le_bits));
      const std::uint32_t lt_bits = le_bits & ~bits_of(_mm256_cmpeq_epi16(lanes, limit));
      below += static_cast<std::uint32_t>(std::popcount(lt_bits));
    }
    return {below / 2, at_most / 2};
  }

  ESPALIER_TARGET_AVX2 static Rank rank32(const std::byte* key_prefixes, std::uint32_t head) {
    const __m256i limit = _mm256_set1_epi32(static_cast<int>(head));
    std::uint32_t below = 0;
    std::uint32_t at_most = 0;
    for (std::size_t half = 0; half < 2; ++half) {
      const __m256i lanes = load(key_prefixes + 32 * half);
      const __m256i le = _mm256_cmpeq_epi32(_mm256_min_epu32(lanes, limit), lanes);
      const __m256i eq = _mm256_cmpeq_epi32(lanes, limit);
      const auto le_bits = static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(le)));
      const auto eq_bits = static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(eq)));
      at_most += static_cast<std::uint32_t>(std::popcount(le_bits));
      below += static_cast<std::uint32_t>(std::popcount(le_bits & ~eq_bits));
    }
    return {below, at_most};
  }

  ESPALIER_TARGET_AVX2 static std::uint64_t match_tags(const std::byte* slots, std::uint32_t count,
                                                       std::uint8_t tag) {
    const __m256i wanted = _mm256_set1_epi16(tag);
    std::uint64_t mask = 0;
    for (std::uint32_t i = 0; i < count; i += 16) {
      const __m256i tags = _mm256_srli_epi16(load(slots + std::size_t{2} * i), 8);
      const std::uint32_t equal = bits_of(_mm256_cmpeq_epi16(tags, wanted));
      mask |= std::uint64_t{_pext_u32(equal, 0x55555555u)} << i;
    }
    return _bzhi_u64(mask, count);
  }

 private:
  ESPALIER_TARGET_AVX2 static __m256i load(const std::byte* at) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  }
  ESPALIER_TARGET_AVX2 static std::uint32_t bits_of(__m256i lanes) {
    return static_cast<std::uint32_t>(_mm256_movemask_epi8(lanes));
  }
};

struct Avx512Kit {
  static constexpr const char* kName = "avx512";

  ESPALIER_TARGET_AVX512 static Rank rank16(const std::byte* key_prefixes, std::uint32_t count,
                                            std::uint16_t head) {
    const __m512i limit = _mm512_set1_epi16(static_cast<short>(head));
    const std::uint64_t valid = _bzhi_u64(~std::uint64_t{0}, count);
    const auto low = static_cast<__mmask32>(valid);
    const auto high = static_cast<__mmask32>(valid >> 32);
    const __m512i a = _mm512_maskz_loadu_epi16(low, key_prefixes);
    const __m512i b = _mm512_maskz_loadu_epi16(high, key_prefixes + 64);
    return {ones(_mm512_mask_cmplt_epu16_mask(low, a, limit),
                 _mm512_mask_cmplt_epu16_mask(high, b, limit)),
            ones(_mm512_mask_cmple_epu16_mask(low, a, limit),
                 _mm512_mask_cmple_epu16_mask(high, b, limit))};
  }

  ESPALIER_TARGET_AVX512 static Rank rank32(const std::byte* key_prefixes, std::uint32_t head) {
    const __m512i limit = _mm512_set1_epi32(static_cast<int>(head));
    const __m512i lanes = _mm512_loadu_si512(key_prefixes);
    return {ones(_mm512_cmplt_epu32_mask(lanes, limit), 0),
            ones(_mm512_cmple_epu32_mask(lanes, limit), 0)};
  }

  ESPALIER_TARGET_AVX512 static std::uint64_t match_tags(const std::byte* slots,
                                                         std::uint32_t count, std::uint8_t tag) {
    const __m512i wanted = _mm512_set1_epi16(tag);
    const std::uint64_t valid = _bzhi_u64(~std::uint64_t{0}, count);
    const auto low = static_cast<__mmask32>(valid);
    const __m512i a = _mm512_srli_epi16(_mm512_maskz_loadu_epi16(low, slots), 8);
    std::uint64_t mask = _mm512_mask_cmpeq_epi16_mask(low, a, wanted);
    if (const auto high = static_cast<__mmask32>(valid >> 32); high != 0) {
      const __m512i b = _mm512_srli_epi16(_mm512_maskz_loadu_epi16(high, slots + 64), 8);
      mask |= std::uint64_t{_mm512_mask_cmpeq_epi16_mask(high, b, wanted)} << 32;
    }
    return mask;
  }

 private:
  ESPALIER_TARGET_AVX512 static std::uint32_t ones(std::uint32_t low, std::uint32_t high) {
    return static_cast<std::uint32_t>(std::popcount(std::uint64_t{high} << 32 | low));
  }
};

#endif

}  // namespace espalier::tree

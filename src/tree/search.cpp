// SPDX-License-Identifier: Apache-2.0
#include "tree/search.hpp"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/atomic_bytes.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__SANITIZE_THREAD__)
#define ESPALIER_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ESPALIER_THREAD_SANITIZER 1
#endif
#endif

namespace espalier::tree {
namespace {

Rank rank16_scalar(const std::byte* heads, std::uint32_t count, std::uint16_t head) {
  Rank rank;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto other = base::load_plain<std::uint16_t>(heads + 2 * i);
    rank.below += other < head ? 1 : 0;
    rank.below_or_equal += other <= head ? 1 : 0;
  }
  return rank;
}

Rank rank32_scalar(const std::byte* heads, std::uint32_t head) {
  Rank rank;
  for (std::uint32_t i = 0; i < 16; ++i) {
    const auto other = base::load_plain<std::uint32_t>(heads + 4 * i);
    rank.below += other < head ? 1 : 0;
    rank.below_or_equal += other <= head ? 1 : 0;
  }
  return rank;
}

// Slots are written while they are read, so the scalar form reads them as atomics. A vector load
// cannot be one in C++'s terms; on the machines that have these instructions each 16-bit lane of it
// is still read whole, which is all that is asked: a slot that matters was complete before.
std::uint64_t match_tags_scalar(const std::byte* slots, std::uint32_t count, std::uint8_t tag) {
  std::uint64_t mask = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto slot = base::load_shared<std::uint16_t>(slots + 2 * i);
    mask |= std::uint64_t{(slot >> 8) == tag ? 1u : 0u} << i;
  }
  return mask;
}

constexpr SearchKit kScalar{rank16_scalar, rank32_scalar, match_tags_scalar, "scalar"};

#if defined(__x86_64__) && !defined(ESPALIER_THREAD_SANITIZER)
#define ESPALIER_HAVE_X86_KITS 1

#define ESPALIER_AVX2 __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))

// 16 lanes of 16 bits: one bit per lane, two of movemask's.
ESPALIER_AVX2 inline std::uint32_t lanes_at_most(__m256i values, __m256i limit) {
  const __m256i at_most = _mm256_cmpeq_epi16(_mm256_min_epu16(values, limit), values);
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(at_most));
}

ESPALIER_AVX2 Rank rank16_avx2(const std::byte* heads, std::uint32_t count, std::uint16_t head) {
  const __m256i limit = _mm256_set1_epi16(static_cast<short>(head));
  std::uint32_t below = 0;
  std::uint32_t at_most = 0;
  for (std::uint32_t i = 0; i < count; i += 16) {
    const __m256i lanes =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(heads + std::size_t{2} * i));
    const std::uint32_t left = count - i;
    const std::uint32_t valid = left >= 16 ? ~0u : (1u << (2 * left)) - 1;
    const std::uint32_t le = lanes_at_most(lanes, limit) & valid;
    const auto eq =
        static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi16(lanes, limit)));
    at_most += static_cast<std::uint32_t>(std::popcount(le));
    below += static_cast<std::uint32_t>(std::popcount(le & ~eq));
  }
  return {below / 2, at_most / 2};
}

ESPALIER_AVX2 Rank rank32_avx2(const std::byte* heads, std::uint32_t head) {
  const __m256i limit = _mm256_set1_epi32(static_cast<int>(head));
  std::uint32_t below = 0;
  std::uint32_t at_most = 0;
  for (std::size_t half = 0; half < 2; ++half) {
    const __m256i lanes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(heads + 32 * half));
    const __m256i le = _mm256_cmpeq_epi32(_mm256_min_epu32(lanes, limit), lanes);
    const __m256i eq = _mm256_cmpeq_epi32(lanes, limit);
    const auto le_bits = static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(le)));
    const auto eq_bits = static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(eq)));
    at_most += static_cast<std::uint32_t>(std::popcount(le_bits));
    below += static_cast<std::uint32_t>(std::popcount(le_bits & ~eq_bits));
  }
  return {below, at_most};
}

ESPALIER_AVX2 std::uint64_t match_tags_avx2(const std::byte* slots, std::uint32_t count,
                                            std::uint8_t tag) {
  const __m256i wanted = _mm256_set1_epi16(tag);
  std::uint64_t mask = 0;
  for (std::uint32_t i = 0; i < count; i += 16) {
    const __m256i lanes =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(slots + std::size_t{2} * i));
    const __m256i equal = _mm256_cmpeq_epi16(_mm256_srli_epi16(lanes, 8), wanted);
    const auto bytes = static_cast<std::uint32_t>(_mm256_movemask_epi8(equal));
    mask |= std::uint64_t{_pext_u32(bytes, 0x55555555u)} << i;
  }
  return count >= 64 ? mask : mask & ((std::uint64_t{1} << count) - 1);
}

constexpr SearchKit kAvx2{rank16_avx2, rank32_avx2, match_tags_avx2, "avx2"};

#define ESPALIER_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512vl,bmi,bmi2,lzcnt,popcnt")))

ESPALIER_AVX512 Rank rank16_avx512(const std::byte* heads, std::uint32_t count,
                                   std::uint16_t head) {
  const __m512i limit = _mm512_set1_epi16(static_cast<short>(head));
  const std::uint64_t valid = count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  const auto low = static_cast<__mmask32>(valid);
  const auto high = static_cast<__mmask32>(valid >> 32);
  const __m512i a = _mm512_maskz_loadu_epi16(low, heads);
  const __m512i b = _mm512_maskz_loadu_epi16(high, heads + 64);
  const auto below = std::uint64_t{_mm512_mask_cmplt_epu16_mask(low, a, limit)} |
                     std::uint64_t{_mm512_mask_cmplt_epu16_mask(high, b, limit)} << 32;
  const auto at_most = std::uint64_t{_mm512_mask_cmple_epu16_mask(low, a, limit)} |
                       std::uint64_t{_mm512_mask_cmple_epu16_mask(high, b, limit)} << 32;
  return {static_cast<std::uint32_t>(std::popcount(below)),
          static_cast<std::uint32_t>(std::popcount(at_most))};
}

ESPALIER_AVX512 Rank rank32_avx512(const std::byte* heads, std::uint32_t head) {
  const __m512i limit = _mm512_set1_epi32(static_cast<int>(head));
  const __m512i lanes = _mm512_loadu_si512(heads);
  return {static_cast<std::uint32_t>(
              std::popcount(std::uint32_t{_mm512_cmplt_epu32_mask(lanes, limit)})),
          static_cast<std::uint32_t>(
              std::popcount(std::uint32_t{_mm512_cmple_epu32_mask(lanes, limit)}))};
}

ESPALIER_AVX512 std::uint64_t match_tags_avx512(const std::byte* slots, std::uint32_t count,
                                                std::uint8_t tag) {
  const __m512i wanted = _mm512_set1_epi16(tag);
  const std::uint64_t valid = count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  const auto low = static_cast<__mmask32>(valid);
  const auto high = static_cast<__mmask32>(valid >> 32);
  const __m512i a = _mm512_srli_epi16(_mm512_maskz_loadu_epi16(low, slots), 8);
  std::uint64_t mask = _mm512_mask_cmpeq_epi16_mask(low, a, wanted);
  if (high != 0) {
    const __m512i b = _mm512_srli_epi16(_mm512_maskz_loadu_epi16(high, slots + 64), 8);
    mask |= std::uint64_t{_mm512_mask_cmpeq_epi16_mask(high, b, wanted)} << 32;
  }
  return mask;
}

constexpr SearchKit kAvx512{rank16_avx512, rank32_avx512, match_tags_avx512, "avx512"};
#endif

Isa isa_cap() {
  const char* text = std::getenv("ESPALIER_ISA");
  const std::string_view cap = text == nullptr ? "" : text;
  if (cap == "scalar") return Isa::scalar;
  if (cap == "avx2") return Isa::avx2;
  return Isa::avx512;
}

}  // namespace

const SearchKit* search_kit(Isa isa) {
  if (isa == Isa::scalar) return &kScalar;
#if defined(ESPALIER_HAVE_X86_KITS)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("popcnt");
  if (isa == Isa::avx2 && avx2) return &kAvx2;
  if (isa == Isa::avx512 && avx2 && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    return &kAvx512;
  }
#endif
  return nullptr;
}

const SearchKit& best_search_kit() {
  static const SearchKit* const best = [] {
    const Isa cap = isa_cap();
    for (const Isa isa : {Isa::avx512, Isa::avx2}) {
      if (isa <= cap && search_kit(isa) != nullptr) return search_kit(isa);
    }
    return &kScalar;
  }();
  return *best;
}

}  // namespace espalier::tree

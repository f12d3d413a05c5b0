// SPDX-License-Identifier: Apache-2.0
#include "dataplane/icrc_changes.hpp"

#include "base/assert.hpp"
#include "base/cpu.hpp"
#include "fabric/roce/icrc.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#define ESPALIER_WIDE_PRODUCTS __attribute__((target("avx512f,avx512bw,vpclmulqdq")))
#endif

namespace espalier::dataplane {
namespace {

#if defined(__x86_64__)

// Bits stand the other way round, the lowest for the highest power. Behind the address come 8 bytes
// and, for a checksum, 32 bits: so its halves count x^128 and x^96 times. The sum of these products
// is brought down from 64 bits to 32 as usual [Barrett].
constexpr long long kFirstHalf = 0x1'40D4'4A2E;
constexpr long long kSecondHalf = 0xCCAA'009E;
constexpr long long kQuotient = 0x1'F701'1641;    // x^64 by the polynomial
constexpr long long kPolynomial = 0x1'DB71'0641;  // with its highest power
constexpr std::size_t kInVector = 8;
// g++ 12 takes the forms without a mask to read what was never set.
constexpr __mmask8 kAll = 0xFF;

/// The lower 64 bits of eight products.
ESPALIER_WIDE_PRODUCTS inline __m512i times(__m512i each, long long by) {
  const __m512i with = _mm512_set1_epi64(by);
  return _mm512_maskz_unpacklo_epi64(kAll, _mm512_clmulepi64_epi128(each, with, 0x00),
                                     _mm512_clmulepi64_epi128(each, with, 0x01));
}

ESPALIER_WIDE_PRODUCTS void find_by_products(IcrcChanges& changes, std::size_t count) {
  const __m512i turned = _mm512_maskz_broadcast_i32x4(
      0xFFFF, _mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  const __m512i low = _mm512_set1_epi64(0xFFFF'FFFF);
  for (std::size_t i = 0; i < count; i += kInVector) {
    const __m512i addresses = _mm512_loadu_si512(changes.addresses.data() + i);
    const __m512i bytes = _mm512_shuffle_epi8(addresses, turned);
    const __m512i sum =
        _mm512_xor_si512(times(_mm512_and_si512(bytes, low), kFirstHalf),
                         times(_mm512_maskz_srli_epi64(kAll, bytes, 32), kSecondHalf));
    const __m512i quotient = times(_mm512_and_si512(sum, low), kQuotient);
    const __m512i taken = times(_mm512_and_si512(quotient, low), kPolynomial);
    const __m512i rest = _mm512_maskz_srli_epi64(kAll, _mm512_xor_si512(sum, taken), 32);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(changes.icrcs.data() + i),
                        _mm512_maskz_cvtepi64_epi32(kAll, rest));
  }
}
static_assert(kIcrcsTogether % kInVector == 0);

#endif

bool has_wide_products() {
#if defined(__x86_64__)
  return base::isa() == base::Isa::avx512 && __builtin_cpu_supports("vpclmulqdq");
#else
  return false;
#endif
}

}  // namespace

void find_icrc_changes_by_table(IcrcChanges& changes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    changes.icrcs[i] = fabric::roce::icrc_change_of_address(changes.addresses[i]);
  }
}

void find_icrc_changes(IcrcChanges& changes, std::size_t count) {
  ESPALIER_ASSERT(count <= kIcrcsTogether);
  static const bool by_products = has_wide_products();
#if defined(__x86_64__)
  if (by_products) return find_by_products(changes, count);
#endif
  find_icrc_changes_by_table(changes, count);
}

}  // namespace espalier::dataplane

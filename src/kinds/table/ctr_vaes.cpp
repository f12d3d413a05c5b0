// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/ctr_vaes.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>

#include "base/cpu.hpp"

#define ESPALIER_VAES [[gnu::target("avx512f,avx512bw,avx512vl,aes,vaes")]]

namespace espalier::table {
namespace {

constexpr std::size_t kBlock = 16;
constexpr std::size_t kWide = 64;     // a register: four blocks
constexpr std::size_t kInFlight = 8;  // registers: AES takes a few cycles for each round
constexpr std::size_t kRounds = 10;
// Asked for ahead of the cipher, which is quicker than memory comes by itself: the processor's own
// prefetching ends where a page of 4 KiB does.
constexpr std::size_t kAhead = 2048;

template <int Constant>
ESPALIER_VAES __m128i next_round_key(__m128i key) {
  const __m128i assist = _mm_shuffle_epi32(_mm_aeskeygenassist_si128(key, Constant), 0xFF);
  key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
  key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
  key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
  return _mm_xor_si128(key, assist);
}

/// Counter blocks as two little-endian numbers of 64 bits each, page and block, for four blocks.
ESPALIER_VAES __m512i counters(std::uint64_t page, std::uint64_t block) {
  const auto p = static_cast<long long>(page);
  const auto b = static_cast<long long>(block);
  return _mm512_set_epi64(b + 3, p, b + 2, p, b + 1, p, b, p);
}

/// Sixteen bytes four times. Masked, because GCC 12 reports an uninitialized read in the unmasked
/// form (its bug 105593).
ESPALIER_VAES __m512i four_times(__m128i block) {
  return _mm512_maskz_broadcast_i32x4(0xFFFF, block);
}

ESPALIER_VAES __m512i big_endian(__m512i numbers) {
  const __m128i reversed = _mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  return _mm512_shuffle_epi8(numbers, four_times(reversed));
}

ESPALIER_VAES __m512i round_key(const std::byte* rounds, std::size_t round) {
  return four_times(_mm_loadu_si128(reinterpret_cast<const __m128i*>(rounds + round * kBlock)));
}

/// The key stream of four blocks.
ESPALIER_VAES __m512i stream(const std::byte* rounds, __m512i numbers) {
  __m512i state = _mm512_xor_si512(big_endian(numbers), round_key(rounds, 0));
  for (std::size_t round = 1; round < kRounds; ++round) {
    state = _mm512_aesenc_epi128(state, round_key(rounds, round));
  }
  return _mm512_aesenclast_epi128(state, round_key(rounds, kRounds));
}

/// Whole groups of 32 blocks.
ESPALIER_VAES void apply_groups(const std::byte* rounds, __m512i numbers, const std::byte* in,
                                std::byte* out, std::size_t groups) {
  __m512i keys[kRounds + 1];
  for (std::size_t round = 0; round <= kRounds; ++round) keys[round] = round_key(rounds, round);
  const __m512i four = _mm512_set_epi64(4, 0, 4, 0, 4, 0, 4, 0);
  for (; groups > 0; --groups) {
    __m512i state[kInFlight];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kInFlight; ++i) {
      __builtin_prefetch(in + i * kWide + kAhead);
      state[i] = _mm512_xor_si512(big_endian(numbers), keys[0]);
      numbers = _mm512_add_epi64(numbers, four);
    }
#pragma GCC unroll 9
    for (std::size_t round = 1; round < kRounds; ++round) {
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kInFlight; ++i) {
        state[i] = _mm512_aesenc_epi128(state[i], keys[round]);
      }
    }
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kInFlight; ++i) {
      const __m512i last = _mm512_aesenclast_epi128(state[i], keys[kRounds]);
      const __m512i text = _mm512_loadu_si512(in + i * kWide);
      _mm512_storeu_si512(out + i * kWide, _mm512_xor_si512(text, last));
    }
    in += kInFlight * kWide;
    out += kInFlight * kWide;
  }
}

/// At most four blocks, the last of them perhaps in part.
ESPALIER_VAES void apply_some(__m512i key_stream, const std::byte* in, std::byte* out,
                              std::size_t bytes) {
  const __mmask64 mask = bytes >= kWide ? ~__mmask64{0} : (__mmask64{1} << bytes) - 1;
  const __m512i text = _mm512_maskz_loadu_epi8(mask, in);
  _mm512_mask_storeu_epi8(out, mask, _mm512_xor_si512(text, key_stream));
}

}  // namespace

bool has_vaes() {
  static const bool has = base::isa() == base::Isa::avx512 && __builtin_cpu_supports("aes") &&
                          __builtin_cpu_supports("vaes");
  return has;
}

ESPALIER_VAES void expand_key_vaes(const std::byte* key, std::byte* rounds) {
  __m128i keys[kRounds + 1];
  keys[0] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(key));
  keys[1] = next_round_key<0x01>(keys[0]);
  keys[2] = next_round_key<0x02>(keys[1]);
  keys[3] = next_round_key<0x04>(keys[2]);
  keys[4] = next_round_key<0x08>(keys[3]);
  keys[5] = next_round_key<0x10>(keys[4]);
  keys[6] = next_round_key<0x20>(keys[5]);
  keys[7] = next_round_key<0x40>(keys[6]);
  keys[8] = next_round_key<0x80>(keys[7]);
  keys[9] = next_round_key<0x1B>(keys[8]);
  keys[10] = next_round_key<0x36>(keys[9]);
  for (std::size_t i = 0; i <= kRounds; ++i) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(rounds + i * kBlock), keys[i]);
  }
}

ESPALIER_VAES void apply_ctr_vaes(const std::byte* rounds, std::uint64_t page, std::uint64_t block,
                                  std::size_t within, const std::byte* in, std::byte* out,
                                  std::size_t bytes) {
  if (within != 0 && bytes != 0) {
    // The rest of a block whose begin is another row's.
    alignas(kWide) std::byte key_stream[kWide];
    _mm512_store_si512(key_stream, stream(rounds, counters(page, block++)));
    const std::size_t rest = std::min(kBlock - within, bytes);
    for (std::size_t i = 0; i < rest; ++i) out[i] = in[i] ^ key_stream[within + i];
    in += rest;
    out += rest;
    bytes -= rest;
  }
  constexpr std::size_t kGroup = kInFlight * kWide;
  const std::size_t groups = bytes / kGroup;
  apply_groups(rounds, counters(page, block), in, out, groups);
  block += groups * kGroup / kBlock;
  for (std::size_t at = groups * kGroup; at < bytes; at += kWide, block += kWide / kBlock) {
    apply_some(stream(rounds, counters(page, block)), in + at, out + at, bytes - at);
  }
}

}  // namespace espalier::table

#else  // no other processor has VAES, these are never called

#include "base/assert.hpp"

namespace espalier::table {

bool has_vaes() { return false; }

void expand_key_vaes(const std::byte* /*key*/, std::byte* /*rounds*/) { ESPALIER_ASSERT(false); }

void apply_ctr_vaes(const std::byte* /*rounds*/, std::uint64_t /*page*/, std::uint64_t /*block*/,
                    std::size_t /*within*/, const std::byte* /*in*/, std::byte* /*out*/,
                    std::size_t /*bytes*/) {
  ESPALIER_ASSERT(false);
}

}  // namespace espalier::table

#endif

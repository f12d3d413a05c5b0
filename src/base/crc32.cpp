// SPDX-License-Identifier: Apache-2.0
#include "base/crc32.hpp"

#include <immintrin.h>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "base/cpu.hpp"

namespace espalier::base {
namespace {

/// Below this, folding costs more to begin and end than it saves.
constexpr std::size_t kFoldBytesMin = 64;
constexpr std::size_t kFoldStep = 64;

/// What a word, already mixed with the state, becomes when `behind` more bytes of the step follow.
template <unsigned behind, Word T>
inline std::uint32_t word_state(T word) {
  std::uint32_t state = 0;
  for (unsigned i = 0; i < sizeof(T); ++i) {
    state ^= kCrc32Tables[behind + sizeof(T) - 1 - i][static_cast<std::uint8_t>(word >> (8 * i))];
  }
  return state;
}

/// x^power modulo the polynomial, as the multiplier of a fold. Bits stand the other way round here,
/// and the product of two such numbers comes out one place too low: hence the shift.
constexpr std::uint64_t multiplier(unsigned power) {
  std::uint32_t rest = 0x8000'0000;
  for (unsigned i = 0; i < power; ++i) {
    rest = (rest >> 1) ^ ((rest & 1) != 0 ? kCrc32Polynomial : 0);
  }
  return std::uint64_t{rest} << 1;
}

__attribute__((target("pclmul"))) inline __m128i load(const std::byte* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

/// Moves 16 bytes ahead by the distance that `by` stands for, onto what lies there.
__attribute__((target("pclmul"))) inline __m128i fold(__m128i value, __m128i by, __m128i onto) {
  const __m128i low = _mm_clmulepi64_si128(value, by, 0x00);
  const __m128i high = _mm_clmulepi64_si128(value, by, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), onto);
}

/// Folds all whole blocks of 16 bytes down to one with the same remainder. Returns the bytes used.
/// Requires: at least 64.
__attribute__((target("pclmul"))) std::size_t fold_blocks(std::uint32_t state,
                                                          std::span<const std::byte> bytes,
                                                          std::byte* to) {
  // A product without carry of 64 and 33 bits ends 32 bits short of the distance, or beyond it.
  const __m128i by_64 = _mm_set_epi64x(static_cast<long long>(multiplier(512 - 32)),
                                       static_cast<long long>(multiplier(512 + 32)));
  const __m128i by_16 = _mm_set_epi64x(static_cast<long long>(multiplier(128 - 32)),
                                       static_cast<long long>(multiplier(128 + 32)));
  const std::byte* at = bytes.data();
  __m128i a = _mm_xor_si128(load(at), _mm_cvtsi32_si128(static_cast<int>(state)));
  __m128i b = load(at + 16);
  __m128i c = load(at + 32);
  __m128i d = load(at + 48);
  std::size_t used = kFoldStep;
  for (; used + kFoldStep <= bytes.size(); used += kFoldStep) {
    a = fold(a, by_64, load(at + used));
    b = fold(b, by_64, load(at + used + 16));
    c = fold(c, by_64, load(at + used + 32));
    d = fold(d, by_64, load(at + used + 48));
  }
  __m128i all = fold(fold(fold(a, by_16, b), by_16, c), by_16, d);
  for (; used + 16 <= bytes.size(); used += 16) all = fold(all, by_16, load(at + used));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), all);
  return used;
}

}  // namespace

std::uint32_t crc32_extend_by_table(std::uint32_t state, std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 16; at += 16, left -= 16) {
    state = word_state<8>(load_le<std::uint64_t>(at) ^ state) ^
            word_state<0>(load_le<std::uint64_t>(at + 8));
  }
  if (left >= 8) {
    state = word_state<0>(load_le<std::uint64_t>(at) ^ state);
    at += 8;
    left -= 8;
  }
  if (left >= 4) {
    state = word_state<0>(load_le<std::uint32_t>(at) ^ state);
    at += 4;
    left -= 4;
  }
  for (; left != 0; ++at, --left) {
    state = (state >> 8) ^ kCrc32Tables[0][(state ^ std::to_integer<std::uint32_t>(*at)) & 0xFF];
  }
  return state;
}

std::uint32_t crc32_extend_by_folding(std::uint32_t state, std::span<const std::byte> bytes) {
  if (bytes.size() < kFoldStep) return crc32_extend_by_table(state, bytes);
  std::byte folded[16];
  const std::size_t used = fold_blocks(state, bytes, folded);
  return crc32_extend_by_table(crc32_extend_by_table(0, folded), bytes.subspan(used));
}

bool crc32_can_fold() {
  static const bool can = cpu_features().pclmul && isa() != Isa::scalar;
  return can;
}

std::uint32_t crc32_extend(std::uint32_t state, std::span<const std::byte> bytes) {
  if (bytes.size() >= kFoldBytesMin && crc32_can_fold()) {
    return crc32_extend_by_folding(state, bytes);
  }
  return crc32_extend_by_table(state, bytes);
}

}  // namespace espalier::base

// SPDX-License-Identifier: Apache-2.0
// AVX2 gather kernels: eight registers of eight columns at a time, then one.
#include "kinds/embedding/gather_kits.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include <utility>

#include "base/atomic_bytes.hpp"

#define ESPALIER_GATHER_AVX2 __attribute__((target("avx2,fma,f16c"), always_inline)) inline

namespace espalier::embedding {
namespace {

/// Scale and bias of an int8 row; unused for other types.
struct BesideAvx2 {
  __m256 scale;
  __m256 bias;
};

template <EmbeddingType kType>
ESPALIER_GATHER_AVX2 BesideAvx2 beside_of_avx2(const std::byte* row, std::uint32_t dimension) {
  if constexpr (kType != EmbeddingType::int8) {
    return {_mm256_setzero_ps(), _mm256_setzero_ps()};
  } else {
    const auto both = base::load_plain<int>(row + dimension);
    const __m128 floats = _mm_cvtph_ps(_mm_cvtsi32_si128(both));
    return {_mm256_broadcastss_ps(floats), _mm256_broadcastss_ps(_mm_movehdup_ps(floats))};
  }
}

template <EmbeddingType kType>
ESPALIER_GATHER_AVX2 __m256 load_avx2(const std::byte* row, std::uint32_t column,
                                      const BesideAvx2& beside) {
  if constexpr (kType == EmbeddingType::fp32) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(row) + column);
  } else if constexpr (kType == EmbeddingType::int8) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + column));
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)), beside.scale,
                           beside.bias);
  } else {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 2 * column));
    if constexpr (kType == EmbeddingType::fp16) return _mm256_cvtph_ps(halves);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
}

// If one is a NaN, max and min of x86 return the second operand: so acc is kept, and x replaces it
// if it is a NaN itself.
template <Fold kFold>
ESPALIER_GATHER_AVX2 __m256 fold_avx2(__m256 acc, __m256 x, __m256 weight) {
  if constexpr (kFold == Fold::add) return _mm256_add_ps(acc, x);
  if constexpr (kFold == Fold::weighted) return _mm256_fmadd_ps(weight, x, acc);
  const __m256 chosen = kFold == Fold::max ? _mm256_max_ps(x, acc) : _mm256_min_ps(x, acc);
  return _mm256_blendv_ps(chosen, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

template <EmbeddingType kType, Fold kFold, int kVectors, bool kAsks>
ESPALIER_GATHER_AVX2 void gather_columns_avx2(const GatherPiece& piece, std::uint32_t column) {
  __m256 acc[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    acc[v] = piece.before != nullptr ? _mm256_loadu_ps(piece.before + column + 8 * v)
                                     : _mm256_set1_ps(first_of(kFold));
  }
  for (std::uint32_t i = 0; i < piece.count; ++i) {
    if constexpr (kAsks) {
      prefetch_later(piece.later[i], piece.row_bytes);
      prefetch_soon(piece.soon[i], piece.row_bytes);
    }
    const std::byte* const row = piece.rows[i];
    const BesideAvx2 beside = beside_of_avx2<kType>(row, piece.dimension);
    const __m256 weight =
        kFold == Fold::weighted ? _mm256_set1_ps(piece.weights[i]) : _mm256_setzero_ps();
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const __m256 x = load_avx2<kType>(row, column + 8 * static_cast<std::uint32_t>(v), beside);
      acc[v] = fold_avx2<kFold>(acc[v], x, weight);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) _mm256_storeu_ps(piece.after + column + 8 * v, acc[v]);
}

template <EmbeddingType kType, Fold kFold>
__attribute__((target("avx2,fma,f16c"))) void gather_avx2(const GatherPiece& piece) {
  std::uint32_t column = 0;
  if (piece.dimension >= 64) {
    gather_columns_avx2<kType, kFold, 8, true>(piece, 0);
    for (column = 64; column + 64 <= piece.dimension; column += 64) {
      gather_columns_avx2<kType, kFold, 8, false>(piece, column);
    }
  } else {
    gather_columns_avx2<kType, kFold, 1, true>(piece, 0);
    column = 8;
  }
  for (; column < piece.dimension; column += 8) {
    gather_columns_avx2<kType, kFold, 1, false>(piece, column);
  }
}

template <EmbeddingType kType>
constexpr void fill_avx2(GatherKernel (&kernels)[kFolds]) {
  kernels[0] = gather_avx2<kType, Fold::add>;
  kernels[1] = gather_avx2<kType, Fold::weighted>;
  kernels[2] = gather_avx2<kType, Fold::max>;
  kernels[3] = gather_avx2<kType, Fold::min>;
}

constexpr GatherKit kAvx2Gather = [] {
  GatherKit kit{"avx2", {}};
  fill_avx2<EmbeddingType::fp32>(kit.kernels[0]);
  fill_avx2<EmbeddingType::fp16>(kit.kernels[1]);
  fill_avx2<EmbeddingType::bf16>(kit.kernels[2]);
  fill_avx2<EmbeddingType::int8>(kit.kernels[3]);
  return kit;
}();

}  // namespace

const GatherKit& avx2_gather() { return kAvx2Gather; }

}  // namespace espalier::embedding

#endif

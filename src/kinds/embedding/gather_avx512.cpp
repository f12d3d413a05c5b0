// SPDX-License-Identifier: Apache-2.0
// AVX-512 gather kernels: four registers of sixteen columns at a time, then one, then half one.
//
// Uses forms with a mask of all lanes: the others read a register that g++ 12 takes for
// uninitialised.
#include "kinds/embedding/gather_kits.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include "base/atomic_bytes.hpp"

#define ESPALIER_GATHER_AVX512 \
  __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl"), always_inline)) inline

namespace espalier::embedding {
namespace {

constexpr __mmask16 kAll = 0xFFFF;

/// Scale and bias of an int8 row; unused for other types.
struct BesideAvx512 {
  __m512 scale;
  __m512 bias;
};

template <EmbeddingType kType>
ESPALIER_GATHER_AVX512 BesideAvx512 beside_of_avx512(const std::byte* row,
                                                     std::uint32_t dimension) {
  if constexpr (kType != EmbeddingType::int8) {
    return {_mm512_setzero_ps(), _mm512_setzero_ps()};
  } else {
    const auto both = base::load_plain<int>(row + dimension);
    const __m128 floats = _mm_cvtph_ps(_mm_cvtsi32_si128(both));
    return {_mm512_maskz_broadcastss_ps(kAll, floats),
            _mm512_maskz_broadcastss_ps(kAll, _mm_movehdup_ps(floats))};
  }
}

/// Sixteen columns, or the eight that are left.
template <EmbeddingType kType, bool kHalf>
ESPALIER_GATHER_AVX512 __m512 load_avx512(const std::byte* row, std::uint32_t column,
                                          const BesideAvx512& beside) {
  if constexpr (kType == EmbeddingType::fp32) {
    const float* const at = reinterpret_cast<const float*>(row) + column;
    return kHalf ? _mm512_maskz_loadu_ps(0x00FF, at) : _mm512_loadu_ps(at);
  } else if constexpr (kType == EmbeddingType::int8) {
    const auto* const at = reinterpret_cast<const __m128i*>(row + column);
    const __m128i bytes = kHalf ? _mm_loadl_epi64(at) : _mm_loadu_si128(at);
    return _mm512_fmadd_ps(_mm512_maskz_cvtepi32_ps(kAll, _mm512_maskz_cvtepu8_epi32(kAll, bytes)),
                           beside.scale, beside.bias);
  } else {
    const std::byte* const at = row + 2 * column;
    const __m256i halves =
        kHalf ? _mm256_zextsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)))
              : _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    if constexpr (kType == EmbeddingType::fp16) return _mm512_maskz_cvtph_ps(kAll, halves);
    return _mm512_castsi512_ps(
        _mm512_maskz_slli_epi32(kAll, _mm512_maskz_cvtepu16_epi32(kAll, halves), 16));
  }
}

// As in AVX2: acc is kept if either is a NaN, and x replaces it if it is one itself.
template <Fold kFold>
ESPALIER_GATHER_AVX512 __m512 fold_avx512(__m512 acc, __m512 x, __m512 weight) {
  if constexpr (kFold == Fold::add) return _mm512_add_ps(acc, x);
  if constexpr (kFold == Fold::weighted) return _mm512_fmadd_ps(weight, x, acc);
  const __m512 chosen =
      kFold == Fold::max ? _mm512_maskz_max_ps(kAll, x, acc) : _mm512_maskz_min_ps(kAll, x, acc);
  return _mm512_mask_mov_ps(chosen, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
}

template <EmbeddingType kType, Fold kFold, int kVectors, bool kAsks, bool kHalf = false>
ESPALIER_GATHER_AVX512 void gather_columns_avx512(const GatherPiece& piece, std::uint32_t column) {
  constexpr __mmask16 kMask = kHalf ? 0x00FF : 0xFFFF;
  __m512 acc[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    acc[v] = piece.before != nullptr ? _mm512_maskz_loadu_ps(kMask, piece.before + column + 16 * v)
                                     : _mm512_set1_ps(first_of(kFold));
  }
  for (std::uint32_t i = 0; i < piece.count; ++i) {
    if constexpr (kAsks) {
      prefetch_later(piece.later[i], piece.row_bytes);
      prefetch_soon(piece.soon[i], piece.row_bytes);
    }
    const std::byte* const row = piece.rows[i];
    const BesideAvx512 beside = beside_of_avx512<kType>(row, piece.dimension);
    const __m512 weight =
        kFold == Fold::weighted ? _mm512_set1_ps(piece.weights[i]) : _mm512_setzero_ps();
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const std::uint32_t at = column + 16 * static_cast<std::uint32_t>(v);
      acc[v] = fold_avx512<kFold>(acc[v], load_avx512<kType, kHalf>(row, at, beside), weight);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    _mm512_mask_storeu_ps(piece.after + column + 16 * v, kMask, acc[v]);
  }
}

template <EmbeddingType kType, Fold kFold>
__attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl"))) void gather_avx512(
    const GatherPiece& piece) {
  std::uint32_t column = 0;
  if (piece.dimension >= 64) {
    gather_columns_avx512<kType, kFold, 4, true>(piece, 0);
    for (column = 64; column + 64 <= piece.dimension; column += 64) {
      gather_columns_avx512<kType, kFold, 4, false>(piece, column);
    }
  } else if (piece.dimension >= 16) {
    gather_columns_avx512<kType, kFold, 1, true>(piece, 0);
    column = 16;
  }
  for (; column + 16 <= piece.dimension; column += 16) {
    gather_columns_avx512<kType, kFold, 1, false>(piece, column);
  }
  if (column == piece.dimension) return;
  if (column == 0) {
    gather_columns_avx512<kType, kFold, 1, true, true>(piece, 0);
  } else {
    gather_columns_avx512<kType, kFold, 1, false, true>(piece, column);
  }
}

template <EmbeddingType kType>
constexpr void fill_avx512(GatherKernel (&kernels)[kFolds]) {
  kernels[0] = gather_avx512<kType, Fold::add>;
  kernels[1] = gather_avx512<kType, Fold::weighted>;
  kernels[2] = gather_avx512<kType, Fold::max>;
  kernels[3] = gather_avx512<kType, Fold::min>;
}

constexpr GatherKit kAvx512Gather = [] {
  GatherKit kit{"avx512", {}};
  fill_avx512<EmbeddingType::fp32>(kit.kernels[0]);
  fill_avx512<EmbeddingType::fp16>(kit.kernels[1]);
  fill_avx512<EmbeddingType::bf16>(kit.kernels[2]);
  fill_avx512<EmbeddingType::int8>(kit.kernels[3]);
  return kit;
}();

}  // namespace

const GatherKit& avx512_gather() { return kAvx512Gather; }

}  // namespace espalier::embedding

#endif

// SPDX-License-Identifier: Apache-2.0
// Gather kernels in plain C++.
#include <cmath>
#include <limits>

#include "base/atomic_bytes.hpp"
#include "kinds/embedding/format.hpp"
#include "kinds/embedding/gather_kits.hpp"
#include "kinds/embedding/row_codec.hpp"

namespace espalier::embedding {
namespace {

using base::load_shared;

template <EmbeddingType kType>
float value_at(const std::byte* row, std::uint32_t column, float scale, float bias) {
  if constexpr (kType == EmbeddingType::fp32) return load_shared<float>(row + 4 * column);
  if constexpr (kType == EmbeddingType::fp16) {
    return float_of_half(load_shared<std::uint16_t>(row + 2 * column));
  }
  if constexpr (kType == EmbeddingType::bf16) {
    return float_of_bfloat(load_shared<std::uint16_t>(row + 2 * column));
  }
  return float_of_byte(load_shared<std::uint8_t>(row + column), scale, bias);
}

template <Fold kFold>
float folded(float acc, float x, float weight) {
  if constexpr (kFold == Fold::add) return acc + x;
  if constexpr (kFold == Fold::weighted) return std::fma(weight, x, acc);
  if constexpr (kFold == Fold::max) return x > acc || std::isnan(x) ? x : acc;
  return x < acc || std::isnan(x) ? x : acc;
}

template <EmbeddingType kType, Fold kFold>
void gather_rows(const GatherPiece& piece) {
  const float first = first_of(kFold);
  for (std::uint32_t c = 0; c < piece.dimension; ++c) {
    piece.after[c] = piece.before != nullptr ? piece.before[c] : first;
  }
  for (std::uint32_t i = 0; i < piece.count; ++i) {
    prefetch_later(piece.later[i], piece.row_bytes);
    const std::byte* const row = piece.rows[i];
    float scale = 0;
    float bias = 0;
    if constexpr (kType == EmbeddingType::int8) {
      scale = float_of_half(load_shared<std::uint16_t>(row + piece.dimension));
      bias = float_of_half(load_shared<std::uint16_t>(row + piece.dimension + 2));
    }
    const float weight = kFold == Fold::weighted ? piece.weights[i] : 0;
    for (std::uint32_t c = 0; c < piece.dimension; ++c) {
      const float x = value_at<kType>(row, c, scale, bias);
      piece.after[c] = folded<kFold>(piece.after[c], x, weight);
    }
  }
}

template <EmbeddingType kType>
constexpr void fill(GatherKernel (&kernels)[kFolds]) {
  kernels[0] = gather_rows<kType, Fold::add>;
  kernels[1] = gather_rows<kType, Fold::weighted>;
  kernels[2] = gather_rows<kType, Fold::max>;
  kernels[3] = gather_rows<kType, Fold::min>;
}

constexpr GatherKit kScalarGather = [] {
  GatherKit kit{"scalar", {}};
  fill<EmbeddingType::fp32>(kit.kernels[0]);
  fill<EmbeddingType::fp16>(kit.kernels[1]);
  fill<EmbeddingType::bf16>(kit.kernels[2]);
  fill<EmbeddingType::int8>(kit.kernels[3]);
  return kit;
}();

}  // namespace

const GatherKit& scalar_gather() { return kScalarGather; }

}  // namespace espalier::embedding

// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/row_codec.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "kinds/embedding/format.hpp"

namespace espalier::embedding {
namespace {

using base::load_plain;
using base::store_plain;

constexpr float kHalfMax = 65504;

// Bytes are chosen by the rounded scale and bias, which decide what each byte stands for.
bool quantise(std::span<const float> values, std::byte* to) {
  const auto [least, greatest] = std::ranges::minmax(values);
  if (!(least >= -kHalfMax) || !(greatest <= kHalfMax)) return false;
  const std::uint16_t bias_bits = half_of_float(least);
  const float bias = float_of_half(bias_bits);
  const std::uint16_t scale_bits = half_of_float((greatest - bias) / 255);
  const float scale = float_of_half(scale_bits);
  for (const float value : values) {
    const float steps = scale > 0 ? (value - bias) / scale : 0;
    const float q = std::clamp(std::nearbyint(steps), 0.0F, 255.0F);
    *to++ = static_cast<std::byte>(static_cast<std::uint8_t>(q));
  }
  store_plain(to, RowScale{scale_bits, bias_bits});
  return true;
}

}  // namespace

Result<void> store_rows(EmbeddingType type, std::uint32_t dimension, std::span<const float> values,
                        std::span<std::byte> to) {
  const std::uint32_t row_bytes = row_bytes_of(type, dimension);
  ESPALIER_ASSERT(values.size() % dimension == 0);
  ESPALIER_ASSERT(to.size() == values.size() / dimension * row_bytes);
  std::byte* at = to.data();
  if (type == EmbeddingType::int8) {
    for (std::size_t row = 0; row < values.size(); row += dimension, at += row_bytes) {
      const auto of_row = values.subspan(row, dimension);
      const auto bad =
          std::ranges::find_if_not(of_row, [](float value) { return std::abs(value) <= kHalfMax; });
      if (bad != of_row.end() || !quantise(of_row, at)) {
        return fail(
            Code::invalid_argument,
            static_cast<std::uint32_t>(row + static_cast<std::size_t>(bad - of_row.begin())));
      }
    }
    return {};
  }
  for (const float value : values) {
    if (type == EmbeddingType::fp32) {
      store_plain(at, value);
      at += 4;
    } else {
      store_plain(at, type == EmbeddingType::fp16 ? half_of_float(value) : bfloat_of_float(value));
      at += 2;
    }
  }
  return {};
}

void load_row(EmbeddingType type, std::span<const std::byte> row, std::span<float> values) {
  const std::byte* const from = row.data();
  RowScale beside{};
  if (type == EmbeddingType::int8) beside = load_plain<RowScale>(from + values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    switch (type) {
      case EmbeddingType::fp32: values[i] = load_plain<float>(from + 4 * i); break;
      case EmbeddingType::fp16:
        values[i] = float_of_half(load_plain<std::uint16_t>(from + 2 * i));
        break;
      case EmbeddingType::bf16:
        values[i] = float_of_bfloat(load_plain<std::uint16_t>(from + 2 * i));
        break;
      case EmbeddingType::int8:
        values[i] = float_of_byte(load_plain<std::uint8_t>(from + i), float_of_half(beside.scale),
                                  float_of_half(beside.bias));
        break;
    }
  }
}

}  // namespace espalier::embedding

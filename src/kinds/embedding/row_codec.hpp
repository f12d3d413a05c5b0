// SPDX-License-Identifier: Apache-2.0
// Encodes the values of a row in the table's format (format.hpp), and decodes them, in plain C++:
// the reference for the gather kernels.
//
// Thread: plain values.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "espalier/embedding_types.hpp"
#include "espalier/error.hpp"

namespace espalier::embedding {

/// Exact. A NaN stays a NaN, made quiet.
[[nodiscard]] constexpr float float_of_half(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half} >> 15 << 31;
  const std::uint32_t exponent = half >> 10 & 0x1F;
  const std::uint32_t fraction = half & 0x3FF;
  if (exponent == 0x1F) {
    const std::uint32_t quiet = fraction != 0 ? 0x400000 : 0;
    return std::bit_cast<float>(sign | 0x7F800000 | fraction << 13 | quiet);
  }
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float tiny = static_cast<float>(fraction) * 0x1p-24F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(tiny));
}

/// Rounds to nearest, ties to even; overflow becomes infinity.
[[nodiscard]] constexpr std::uint16_t half_of_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 31 << 15);
  const std::uint32_t size = bits & 0x7FFFFFFF;
  const auto with_sign = [sign](std::uint32_t low) {
    return static_cast<std::uint16_t>(sign | low);
  };
  if (size > 0x7F800000) return with_sign(0x7E00 | (size >> 13 & 0x3FF));
  if (size >= 0x47800000) return with_sign(0x7C00);
  const auto rounded = [](std::uint32_t number, unsigned bits_off) {
    const std::uint32_t half = (std::uint32_t{1} << (bits_off - 1)) - 1;
    return (number + half + (number >> bits_off & 1)) >> bits_off;
  };
  if (size >= 0x38800000) return with_sign(rounded(size - 0x38000000, 13));
  const std::uint32_t exponent = size >> 23;
  if (exponent < 101) return sign;  // below half of the smallest
  const std::uint32_t fraction = (size & 0x7FFFFF) | 0x800000;
  return with_sign(rounded(fraction, 126 - exponent));
}

[[nodiscard]] constexpr float float_of_bfloat(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

/// As half_of_float().
[[nodiscard]] constexpr std::uint16_t bfloat_of_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/// A value of an int8 row: one rounding.
[[nodiscard]] inline float float_of_byte(std::uint8_t q, float scale, float bias) {
  return std::fma(static_cast<float>(q), scale, bias);
}

/// Encodes rows for a table of this type. fp16 and bf16 round to the nearest; int8 chooses scale
/// and bias by the least and the greatest value of each row. Errors: invalid_argument (int8: a
/// value is not finite, or too large for fp16; detail: its place). Requires: whole rows; room for
/// them.
Result<void> store_rows(EmbeddingType type, std::uint32_t dimension, std::span<const float> values,
                        std::span<std::byte> to);

/// Decodes one row. Requires: as many values as its dimension.
void load_row(EmbeddingType type, std::span<const std::byte> row, std::span<float> values);

}  // namespace espalier::embedding

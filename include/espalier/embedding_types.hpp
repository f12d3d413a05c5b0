// SPDX-License-Identifier: Apache-2.0
// What embedding tables are made of, and what is asked of them (espalier/embedding_table.hpp).
#pragma once

#include <cstdint>
#include <span>

namespace espalier {

/// How the values of a row lie in memory. The numbers are the protocol's.
enum class EmbeddingType : std::uint8_t {
  fp32 = 1,
  fp16 = 2,  ///< IEEE 754 binary16
  bf16 = 3,  ///< the upper half of a binary32
  int8 = 4,  ///< q of 0 to 255 is q * scale + bias; both lie behind the row's values, as fp16
};

/// How an embedding table is made.
struct EmbeddingOptions {
  /// Values of a row: a multiple of 8, at most 1024.
  std::uint32_t dimension = 64;
  EmbeddingType type = EmbeddingType::fp32;

  friend bool operator==(const EmbeddingOptions&, const EmbeddingOptions&) = default;
};

/// What is made of the rows of a bag. The numbers are the protocol's.
enum class Reduction : std::uint8_t {
  sum = 1,
  mean = 2,
  max = 3,            ///< of each column; a NaN stays
  min = 4,            ///< likewise
  inner_product = 5,  ///< one number: the product of the bag's sum with a vector
};

/// Bags of rows, as PyTorch's EmbeddingBag has them: bag b is of the ids from offsets[b] on, up to
/// those of the next bag, or to the end. An id may come often; a bag may be empty, and comes to
/// zeros then.
struct EmbeddingBags {
  std::span<const std::uint32_t> ids;
  /// The first is 0; they do not fall; none is above the number of ids.
  std::span<const std::uint32_t> offsets;
  /// Empty, or one for each id: by it the row is multiplied. For sum and inner_product alone.
  std::span<const float> weights{};
};

}  // namespace espalier

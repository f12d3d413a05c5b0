// SPDX-License-Identifier: Apache-2.0
// What embedding tables are made of, and what is asked of them (espalier/embedding_table.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "espalier/kind.hpp"

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
  /// As MapOptions::durability, but that `async` is as sync.
  std::optional<Durability> durability{};

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
  /// 0, or the grouping of the table by which ids are renumbered (EmbeddingTable::renumber).
  std::uint32_t grouping = 0;
};

/// Groups of rows that bags often ask for together. Their sums are kept, so that a bag reads one
/// row in place of several [RAMBDA §VI-D, MERCI].
struct RowGroups {
  static constexpr std::uint32_t kRowsMin = 2;
  static constexpr std::uint32_t kRowsMax = 8;

  /// Rows of each group, 2 to 8.
  std::span<const std::uint8_t> sizes;
  /// Ids: those of one group behind those of the other. None comes twice.
  std::span<const std::uint32_t> rows;
};

/// Sums that a group of so many rows keeps: of each two or more of them. One alone is its row.
[[nodiscard]] constexpr std::uint32_t group_sums(std::uint32_t rows) {
  return (std::uint32_t{1} << rows) - 1 - rows;
}

}  // namespace espalier

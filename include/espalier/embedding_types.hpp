// SPDX-License-Identifier: Apache-2.0
// Types of embedding tables and of requests to them (espalier/embedding_table.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "espalier/kind.hpp"

namespace espalier {

/// How the values of a row lie in memory. The numbers are part of the protocol.
enum class EmbeddingType : std::uint8_t {
  fp32 = 1,
  fp16 = 2,  ///< IEEE 754 binary16
  bf16 = 3,  ///< the upper half of a binary32
  int8 = 4,  ///< q of 0 to 255 is q * scale + bias; both lie behind the row's values, as fp16
};

/// Options of a new embedding table.
struct EmbeddingOptions {
  /// Values in a row: a multiple of 8, at most 1024.
  std::uint32_t dimension = 64;
  EmbeddingType type = EmbeddingType::fp32;
  /// As MapOptions::durability, except that `async` acts as sync.
  std::optional<Durability> durability{};

  friend bool operator==(const EmbeddingOptions&, const EmbeddingOptions&) = default;
};

/// How the rows of a bag are reduced. The numbers are part of the protocol.
enum class Reduction : std::uint8_t {
  sum = 1,
  mean = 2,
  max = 3,            ///< per column; a NaN propagates
  min = 4,            ///< likewise
  inner_product = 5,  ///< one float: the product of the bag's sum with a vector
};

/// Bags of rows, in the form of PyTorch's EmbeddingBag: bag b holds the ids from offsets[b] up to
/// the offset of the next bag, or to the end. An id may repeat. An empty bag yields zeros.
struct EmbeddingBags {
  std::span<const std::uint32_t> ids;
  /// The first is 0; they ascend (equal ones allowed); none exceeds the number of ids.
  std::span<const std::uint32_t> offsets;
  /// Empty, or one factor for each id. For sum and inner_product only.
  std::span<const float> weights{};
  /// 0, or the grouping by which the ids were renumbered (EmbeddingTable::renumber).
  std::uint32_t grouping = 0;
};

/// Groups of rows that bags often contain together. The table keeps their sums, so that a bag reads
/// one row in place of several [RAMBDA §VI-D, MERCI].
struct RowGroups {
  static constexpr std::uint32_t kRowsMin = 2;
  static constexpr std::uint32_t kRowsMax = 8;

  /// Rows of each group, 2 to 8.
  std::span<const std::uint8_t> sizes;
  /// Ids, group by group. No id comes twice.
  std::span<const std::uint32_t> rows;
};

/// Number of sums kept for a group of so many rows: one for each subset of two or more.
[[nodiscard]] constexpr std::uint32_t group_sums(std::uint32_t rows) {
  return (std::uint32_t{1} << rows) - 1 - rows;
}

}  // namespace espalier

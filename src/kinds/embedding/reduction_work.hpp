// SPDX-License-Identifier: Apache-2.0
// A reduction of rows of an embedding table, and its errors.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "espalier/embedding_types.hpp"
#include "espalier/table_error.hpp"

namespace espalier::embedding {

struct ReductionWork {
  Reduction reduction = Reduction::sum;
  EmbeddingBags bags;
  /// For an inner product: one value for each column; else none.
  std::span<const float> vector{};
};

/// Why work is invalid for any rows; nothing: it is valid, as far as ids are. Cost: reads each
/// offset.
[[nodiscard]] std::optional<std::string> fault_of_work(const ReductionWork& work,
                                                       std::uint32_t dimension);

/// An id that names no row, or ids renumbered by another grouping than the table's.
struct WrongId {
  std::uint32_t id = 0;     // or the grouping of the request
  std::uint32_t place = 0;  // among the ids
  std::uint64_t rows = 0;   // of the table, or the grouping that the table has
  bool grouping = false;
};
/// "id 12 at place 3 is not below the table's 10 rows".
[[nodiscard]] std::string describe(const WrongId& wrong);
/// The same as an error: invalid_argument (detail: the id), or outdated (detail: the grouping that
/// the table has, or 0).
[[nodiscard]] TableError error_of(const WrongId& wrong);

/// The number of floats of a bag's result.
[[nodiscard]] constexpr std::uint32_t result_width(Reduction reduction, std::uint32_t dimension) {
  return reduction == Reduction::inner_product ? 1 : dimension;
}

}  // namespace espalier::embedding

// SPDX-License-Identifier: Apache-2.0
// A reduction of a few rows, all of which are prefetched together: it needs no window, no memory of
// its own, and two steps. Rows are whole, and results have the bits that a Reducer gives.
//
//   begin()   checks ids, and prefetches their rows
//   fold()    reads sequences, folds rows, and reads sequences again (reducer.hpp)
//
// It does not read sums of groups.
//
// Thread: one at a time. The table outlives it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>

#include "kinds/embedding/embedding_table.hpp"
#include "kinds/embedding/gather.hpp"
#include "kinds/embedding/reduction_work.hpp"

namespace espalier::embedding {

class SmallReduction {
 public:
  static constexpr std::uint32_t kRowsMax = 16;
  /// Limit on floats of its results.
  static constexpr std::uint32_t kFloatsMax = 1024;

  /// Whether work is small enough. Requires: no fault_of_work().
  [[nodiscard]] static bool fits(const EmbeddingTable& table, const ReductionWork& work);

  /// Errors: WrongId. Requires: fits().
  std::expected<void, WrongId> begin(const EmbeddingTable& table,
                                     std::span<const std::uint32_t> ids);
  /// Requires: begin() succeeded with the ids of this work; `results` has room for result_width()
  /// floats of each bag.
  ReductionCounts fold(const EmbeddingTable& table, const ReductionWork& work,
                       std::span<float> results, const GatherKit& kit = gather_kit(base::isa()));

 private:
  [[nodiscard]] bool read_sequences(const PageList& list);
  [[nodiscard]] bool are_as_before(const EmbeddingTable& table, const PageList& list) const;

  std::array<const std::byte*, kRowsMax> rows_;
  std::array<std::uint32_t, kRowsMax> pages_;
  std::array<std::uint64_t, kRowsMax> sequences_;
  std::uint32_t count_ = 0;
};

}  // namespace espalier::embedding

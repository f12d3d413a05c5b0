// SPDX-License-Identifier: Apache-2.0
// A reduction of a few rows, all of which are on their way at once: it needs no window, no memory
// of its own, and two steps. Rows are whole, and results have the bits that a Reducer comes to.
//
//   begin()   ids are checked, and their rows asked for
//   fold()    sequences are looked at, rows folded, and sequences looked at again (reducer.hpp)
//
// Sums of groups are a Reducer's matter.
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
  /// Of its results.
  static constexpr std::uint32_t kFloatsMax = 1024;

  /// Whether work is one. Requires: no fault_of_work().
  [[nodiscard]] static bool fits(const EmbeddingTable& table, const ReductionWork& work);

  /// Errors: WrongId. Requires: fits().
  std::expected<void, WrongId> begin(const EmbeddingTable& table,
                                     std::span<const std::uint32_t> ids);
  /// Requires: begin() went well, and had the ids of this work; `results` has room for
  /// result_width() floats of each bag.
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

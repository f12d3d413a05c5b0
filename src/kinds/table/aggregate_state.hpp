// SPDX-License-Identifier: Apache-2.0
// Partial states of aggregates in a group's row (kinds/table/pipeline.hpp): layout, initial values,
// and merging.
//
// Thread: as the rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kinds/table/pipeline.hpp"

namespace espalier::table {

/// One aggregate of a group's row. Fields that an aggregate does not use are 0.
struct AggregateSlot {
  wire::Aggregate aggregate;
  ValueType argument;
  std::uint16_t item;
  std::uint32_t offset = 0;  ///< of its first column
  std::uint32_t bytes = 0;   ///< of that
  std::uint32_t high_offset = 0;
  std::uint32_t count_offset = 0;
  std::uint32_t null_byte = 0;  ///< of the first column and, where there is one, the high half
  std::uint8_t null_mask = 0;
  std::uint32_t high_null_byte = 0;
  std::uint8_t high_null_mask = 0;

  [[nodiscard]] bool adds() const {
    return aggregate == wire::Aggregate::sum || aggregate == wire::Aggregate::avg;
  }
  /// Whether its sum has two halves.
  [[nodiscard]] bool is_wide() const { return argument.kind != wire::ValueKind::real; }
  [[nodiscard]] bool is_null(const std::byte* row) const {
    return (row[null_byte] & std::byte{null_mask}) != std::byte{0};
  }
  void clear_null(std::byte* row) const {
    row[null_byte] &= ~std::byte{null_mask};
    row[high_null_byte] &= ~std::byte{high_null_mask};
  }
};

/// The aggregates of a grouping pipeline.
[[nodiscard]] std::vector<AggregateSlot> aggregate_slots(const Pipeline& pipeline);

/// A row of initial states. Keys are zeros.
[[nodiscard]] std::vector<std::byte> initial_row(const Pipeline& pipeline,
                                                 const std::vector<AggregateSlot>& slots);

/// Merges the states of `from` into `into`. Requires: rows of one group.
void merge_states(const std::vector<AggregateSlot>& slots, std::byte* into, const std::byte* from);

/// Compares two stored values. Requires: neither is null.
[[nodiscard]] int compare_stored(const AggregateSlot& slot, const std::byte* a, const std::byte* b);

}  // namespace espalier::table

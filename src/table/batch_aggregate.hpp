// SPDX-License-Identifier: Apache-2.0
// Adds the rows of a batch to the states of their groups, one aggregate after the other.
//
// Thread: immutable; safe to use from any, on rows of one's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "table/aggregate_state.hpp"
#include "table/batch_program.hpp"

namespace espalier::table {

class BatchAggregates {
 public:
  explicit BatchAggregates(const BatchProgram& program);

  /// Adds rows `first` to `last`, that one left out. groups[i]: the row of the i-th row's group.
  void add(const Register* registers, std::byte* const* groups, std::uint32_t first,
           std::uint32_t last) const;

  [[nodiscard]] const std::vector<AggregateSlot>& slots() const { return slots_; }

 private:
  std::vector<AggregateSlot> slots_;
  std::vector<std::uint16_t> registers_;  // by slot
};

}  // namespace espalier::table

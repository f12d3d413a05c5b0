// SPDX-License-Identifier: Apache-2.0
// Adds the rows of a batch to the states of their groups, one aggregate at a time.
//
// Thread: immutable; safe to use from any, on rows of one's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kinds/table/aggregate_state.hpp"
#include "kinds/table/batch_program.hpp"

namespace espalier::table {

class BatchAggregates {
 public:
  explicit BatchAggregates(const BatchProgram& program);

  /// Prepares an initial row for its first value, so that states whose argument is never null need
  /// not test for the first value.
  void prepare(std::byte* blank) const;
  /// Adds rows `first` to `first + count`. groups[i]: the row of the i-th of these, copied from a
  /// prepared one.
  void add(const Register* registers, std::byte* const* groups, std::uint32_t first,
           std::uint32_t count) const;
  /// Adds the first `count` rows to the only group, whose row was not prepared.
  void add_all(const Register* registers, std::uint32_t count, std::byte* row) const;

  [[nodiscard]] const std::vector<AggregateSlot>& slots() const { return slots_; }

 private:
  struct Part;

  static void add_to(const AggregateSlot& slot, const Part& part);

  std::vector<AggregateSlot> slots_;
  std::vector<std::uint16_t> registers_;  // by slot
};

}  // namespace espalier::table

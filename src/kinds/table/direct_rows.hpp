// SPDX-License-Identifier: Apache-2.0
// Rows of a table whose key is eight bytes of theirs, as they are, and what of them is added to
// their groups, as it is: sums of columns of 8 bytes, and counts. Where a table of groups knows by
// an array which row a key has (kinds/table/group_table.hpp), finding and adding are one loop over
// the rows then, and nothing of them is copied in between.
//
// Thread: immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kinds/table/aggregate_state.hpp"
#include "kinds/table/batch_program.hpp"

namespace espalier::table {

/// Rows of a batch that are selected, from one of them on.
struct DirectRows {
  const std::byte* rows;
  std::size_t row_bytes;
  const std::uint16_t* selected;  ///< numbers of rows; null: they are the first `count`
  std::uint32_t count;
  const std::byte* ahead;  ///< asked for meanwhile, a row with each key; null: nothing is
};

/// What of a row is added to its group. Offsets are of the table's row (from) and of the group's.
struct DirectSums {
  struct Sum {
    std::uint32_t from;
    std::uint32_t low;
    std::uint32_t high;
  };
  std::uint32_t key_from = 0;
  std::vector<Sum> sums;
  std::vector<std::uint32_t> counts;

  /// Of a pipeline that groups, or leaves rows distinct. Nothing where its only key, or one of its
  /// aggregates, needs more than this.
  static std::optional<DirectSums> of(const BatchProgram& program,
                                      const std::vector<AggregateSlot>& slots);
};

}  // namespace espalier::table

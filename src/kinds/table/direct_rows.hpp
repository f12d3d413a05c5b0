// SPDX-License-Identifier: Apache-2.0
// Direct grouping: rows whose key is eight bytes of the table's row, unchanged, with aggregates
// that are sums of columns of 8 bytes, and counts. If a table of groups maps keys to rows by an
// array (kinds/table/group_table.hpp), lookup and accumulation are one loop over the rows without
// copies.
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

/// Selected rows of a batch, from one of them on.
struct DirectRows {
  const std::byte* rows;
  std::size_t row_bytes;
  const std::uint16_t* selected;  ///< numbers of rows; null: they are the first `count`
  std::uint32_t count;
  const std::byte* ahead;  ///< asked for meanwhile, a row with each key; null: nothing is
};

/// Aggregates to add. Offsets are in the table's row (from) and in the group's.
struct DirectSums {
  struct Sum {
    std::uint32_t from;
    std::uint32_t low;
    std::uint32_t high;
  };
  std::uint32_t key_from = 0;
  std::vector<Sum> sums;
  std::vector<std::uint32_t> counts;

  /// For a pipeline that groups, or has distinct. Nullopt if its key, or one of its aggregates,
  /// needs more than this.
  static std::optional<DirectSums> of(const BatchProgram& program,
                                      const std::vector<AggregateSlot>& slots);
};

}  // namespace espalier::table

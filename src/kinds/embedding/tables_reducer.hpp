// SPDX-License-Identifier: Apache-2.0
// Reduces bags of several tables in order, each in steps: while one is summed, the first rows of
// the next one are prefetched.
//
// Invariants
// 1. At most two tables have a reduction in progress, so that neither memory nor a turn's lines
//    grow with their number.
//
// Thread: one at a time. Tables, bags and the buffer for results outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "espalier/table_error.hpp"
#include "kinds/embedding/embedding_table.hpp"
#include "kinds/embedding/reducer.hpp"
#include "kinds/embedding/reduction_work.hpp"

namespace espalier::embedding {

/// The work on one table.
struct TableWork {
  const EmbeddingTable* table = nullptr;
  ReductionWork work;
  std::span<float> results{};  // result_width() floats of each bag
};

class TablesReducer {
 public:
  /// Requires: no fault_of_tables(); room for all results.
  explicit TablesReducer(std::span<const TableWork> works) : works_(works) {}

  /// Prefetches the first rows. Errors: of a table, in words; and no results.
  TableResult<void> begin();
  /// Folds some rows of one table. Returns whether there is more to do; results are complete when
  /// there is not, and the tables have counted them. A table that is dropped meanwhile is read to
  /// the end. Errors: as of begin(). Requires: begin() was called, and succeeded.
  TableResult<bool> step();

 private:
  TableResult<void> open(std::size_t number);
  [[nodiscard]] TableError in_words(std::size_t number, TableError error) const;

  const std::span<const TableWork> works_;
  std::optional<Reducer> reducers_[2];  // the index is a table's number mod 2
  std::size_t now_ = 0;
};

/// The error of one of several tables: its words begin with the table's name.
[[nodiscard]] TableError error_at(const std::string& table, TableError error);

/// Why work is invalid, in words that begin with the table's name; nothing: it is valid, as far as
/// ids are. Cost: reads each offset.
[[nodiscard]] std::optional<std::string> fault_of_tables(std::span<const TableWork> works);

/// Runs the whole reduction. Errors: as of step().
TableResult<void> reduce_tables(std::span<const TableWork> works);

}  // namespace espalier::embedding

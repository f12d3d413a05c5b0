// SPDX-License-Identifier: Apache-2.0
// Makes a grouping of a table's rows in pieces of bounded work, between which other users of the
// thread and of the table proceed.
//
//   counting -> taking -> emptying -> numbering -> summing -> recording -> showing -> over
//   sizes       pages     places      rows         groups     records
//
// Invariants
// 1. The table's groups stay as they were until the last piece; then the new ones replace them,
//    with all sums computed. A grouping that ends before, for whatever reason, has no effect.
// 2. No page is taken before the number of pages is known, and there may be room for them.
// 3. Its records follow each other without a pause, so that a copy of the table which begins
//    between them only waits for their end (offload/embedding_copy.cpp).
// 4. A table has at most one grouping in progress.
//
// Thread: one at a time; other threads read and write the table. The table, and the memory of the
// groups, outlive it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "espalier/embedding_types.hpp"
#include "espalier/table_error.hpp"
#include "kinds/embedding/embedding_table.hpp"
#include "kinds/embedding/memo.hpp"

namespace espalier::embedding {

class Grouping {
 public:
  /// No groups: the table will have none.
  Grouping(EmbeddingTable& table, const RowGroups& groups);
  /// Reverts a grouping that is not over. Cost: a short lock; memory is freed as
  /// EmbeddingTable::give_back_through() says.
  ~Grouping();
  Grouping(const Grouping&) = delete;
  Grouping& operator=(const Grouping&) = delete;

  /// Does a piece; returns whether there is more to do. After an error there is not. Cost: some 100
  /// us: 64 Ki sizes, 16 pages, 2 MiB of places, 4 Ki ids, or 128 KiB of sums. Errors:
  /// invalid_argument (in words: they are no groups of this table), out_of_memory, busy (another
  /// grouping of this table is in progress), not_found (the table was dropped), those of the
  /// table's sink, of which busy comes after a second.
  TableResult<bool> step();
  /// The number of the grouping; 0: it has no groups. Requires: step() returned that it is over.
  [[nodiscard]] std::uint32_t number() const { return number_; }

 private:
  enum class Stage : std::uint8_t {
    begin,
    counting,
    taking,
    emptying,
    numbering,
    summing,
    recording,
    showing,
    over
  };

  TableResult<bool> piece();
  void end();
  TableResult<bool> begin();
  TableResult<bool> count_sizes();
  TableResult<bool> take_pages();
  TableResult<bool> number_rows();
  TableResult<bool> compute_sums();
  TableResult<bool> wait_for_room(const Error& error);
  TableResult<bool> record_some();
  TableResult<bool> show();

  EmbeddingTable& table_;
  const RowGroups groups_;
  const std::uint64_t rows_;
  std::uint32_t number_ = 0;
  Stage stage_ = Stage::begin;
  bool begun_ = false;  // it is registered with the table
  GroupSizes sizes_;
  std::shared_ptr<Memo> memo_;
  std::size_t group_ = 0;  // the next one to have its size counted, or its rows numbered
  std::size_t id_ = 0;     // where the rows of that begin
  bool recorded_ = false;  // some of its records
  std::uint64_t refused_since_ns_ = 0;  // the sink has no room; 0: it has
  std::array<std::uint32_t, RowGroups::kRowsMax + 1> next_of_size_{};
};

/// Makes the whole grouping. Returns its number. Errors: as of step().
TableResult<std::uint32_t> group_rows(EmbeddingTable& table, const RowGroups& groups);

}  // namespace espalier::embedding

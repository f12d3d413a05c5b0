// SPDX-License-Identifier: Apache-2.0
// A grouping of a table's rows that is being made: in pieces of bounded work, between which others
// go on, whoever they are that wait for the thread or for the table.
//
//   counting -> taking -> emptying -> numbering -> summing -> recording -> showing -> over
//   sizes       pages     places      rows         groups     records
//
// Invariants
// 1. The table's groups stay as they were until the last piece; then the new ones stand in their
//    place, all sums computed. A grouping that ends before, for whatever reason, leaves nothing.
// 2. No page is taken before it is known how many there are to be, and that there may be room.
// 3. Its records follow each other without a pause, so that a copy of the table which begins
//    between them waits for their end alone (offload/embedding_copy.cpp).
// 4. A table has one grouping at a time that is being made.
//
// Thread: one at a time; others read and write the table. The table, and the memory of the groups,
// outlive it.
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
  /// Without groups the table is to have none.
  Grouping(EmbeddingTable& table, const RowGroups& groups);
  /// One that is not over is undone. Cost: a moment's lock; memory goes back as EmbeddingTable
  /// says.
  ~Grouping();
  Grouping(const Grouping&) = delete;
  Grouping& operator=(const Grouping&) = delete;

  /// Does a piece; returns whether there are others to do. After an error there are none.
  /// Cost: some 100 us: 64 Ki sizes, 16 pages, 2 MiB of places, 4 Ki ids, or 128 KiB of sums.
  /// Errors: invalid_argument (in words: they are no groups of this table), out_of_memory, busy
  /// (another grouping of this table is being made), not_found (the table was dropped), those of
  /// the table's sink, of which busy comes after a second.
  TableResult<bool> step();
  /// The number of the grouping; 0: it has no groups. Requires: step() said that it is over.
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
  bool begun_ = false;  // the table knows of it
  GroupSizes sizes_;
  std::shared_ptr<Memo> memo_;
  std::size_t group_ = 0;  // the next one whose size is counted, or whose rows are numbered
  std::size_t id_ = 0;     // where the rows of that begin
  bool recorded_ = false;  // some of it
  std::uint64_t refused_since_ns_ = 0;  // the sink has no room; 0: it has
  std::array<std::uint32_t, RowGroups::kRowsMax + 1> next_of_size_{};
};

/// All of it. Returns the number of the grouping. Errors: as of step().
TableResult<std::uint32_t> group_rows(EmbeddingTable& table, const RowGroups& groups);

}  // namespace espalier::embedding

// SPDX-License-Identifier: Apache-2.0
// Implementation of RowStream: pulls rows of a run, merges partial groups, and returns rows of the
// answer.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/fork_mark.hpp"
#include "channel/interface.hpp"
#include "espalier/query.hpp"
#include "kinds/table/format/table_calls.hpp"

namespace espalier::table {
class ResultMerge;
}

namespace espalier::client {

class TableRun;
struct WrittenQuery;

class RowStreamImpl {
 public:
  RowStreamImpl(std::shared_ptr<const WrittenQuery> query, std::unique_ptr<TableRun> run);
  ~RowStreamImpl();

  [[nodiscard]] const WrittenQuery& query() const { return *query_; }
  /// Errors: forked, and those of TableRun::next().
  TableResult<std::optional<Rows>> next();
  /// All remaining rows. Errors: as next().
  TableResult<Rows> all();
  /// Ends it: next() returns nothing more.
  void cancel() {
    if (mark_.is_copy()) return;
    end();
    groups_known_ = false;
  }
  [[nodiscard]] wire::QueryNumbers numbers() const;

 private:
  /// Appends available rows of the answer to `rows`. False: the end.
  TableResult<bool> pull(std::vector<std::byte>& rows);
  void end();
  void take_groups(std::vector<std::byte>& rows, std::size_t most);

  const base::ForkMark mark_;
  const std::shared_ptr<const WrittenQuery> query_;
  const std::unique_ptr<table::ResultMerge> merge_;
  std::unique_ptr<TableRun, DeleteUnlessCopy> run_;  // null: it has ended
  std::vector<std::byte> copy_;                      // of rows that may change
  wire::QueryNumbers numbers_{};
  std::optional<TableError> error_;
  std::size_t groups_taken_ = 0;
  bool groups_known_ = false;
};

}  // namespace espalier::client

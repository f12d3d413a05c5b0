// SPDX-License-Identifier: Apache-2.0
// What stands behind a RowStream: pulls rows of a run, merges what came in parts, and hands out
// rows of the answer.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kinds/table/client/rows.hpp"
#include "kinds/table/client/tables.hpp"
#include "kinds/table/result.hpp"

namespace espalier::client {

class RowStreamImpl {
 public:
  RowStreamImpl(std::shared_ptr<const WrittenQuery> query, std::unique_ptr<TableRun> run);

  [[nodiscard]] const WrittenQuery& query() const { return *query_; }
  /// Errors: forked, and those of TableRun::next().
  TableResult<std::optional<Rows>> next();
  /// All that is left. Errors: as next().
  TableResult<Rows> all();
  /// next() gives nothing more.
  void cancel() {
    if (mark_.is_copy()) return;
    end();
    groups_known_ = false;
  }
  [[nodiscard]] wire::QueryNumbers numbers() const {
    return run_ && !mark_.is_copy() ? run_->numbers() : numbers_;
  }

 private:
  /// Rows of the answer, as many as there are now, copied behind `rows`. False: that was the end.
  TableResult<bool> pull(std::vector<std::byte>& rows);
  void end();
  void take_groups(std::vector<std::byte>& rows, std::size_t most);

  const base::ForkMark mark_;
  const std::shared_ptr<const WrittenQuery> query_;
  table::ResultMerge merge_;
  std::unique_ptr<TableRun, DeleteUnlessCopy> run_;  // null: it has ended
  std::vector<std::byte> copy_;                      // of rows that may change
  wire::QueryNumbers numbers_{};
  std::optional<TableError> error_;
  std::size_t groups_taken_ = 0;
  bool groups_known_ = false;
};

}  // namespace espalier::client

// SPDX-License-Identifier: Apache-2.0
// Implementation of Rows: rows of a pipeline's result, all partial groups merged; values are
// decoded on access.
//
// They come from a node: untrusted bytes.
//
// Thread: immutable; safe to read from any.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "espalier/query.hpp"
#include "kinds/table/client/query_writer.hpp"

namespace espalier::client {

class RowsImpl {
 public:
  /// Requires: whole rows of the query's result.
  RowsImpl(std::shared_ptr<const WrittenQuery> query, std::vector<std::byte> rows)
      : query_(std::move(query)), rows_(std::move(rows)) {}
  static Rows handle(std::shared_ptr<const WrittenQuery> query, std::vector<std::byte> rows) {
    return Rows(std::make_shared<const RowsImpl>(std::move(query), std::move(rows)));
  }

  [[nodiscard]] const std::vector<AnswerColumn>& columns() const { return query_->columns; }
  [[nodiscard]] std::size_t size() const { return rows_.size() / row_bytes(); }
  /// Text points into the row. Requires: there is such a row, and such a column.
  [[nodiscard]] Value value(std::size_t row, std::size_t column) const;

 private:
  [[nodiscard]] std::size_t row_bytes() const { return query_->pipeline.result.row_bytes(); }

  const std::shared_ptr<const WrittenQuery> query_;
  const std::vector<std::byte> rows_;
};

}  // namespace espalier::client

// SPDX-License-Identifier: Apache-2.0
// Writes values into the bytes of rows to append.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "espalier/table.hpp"
#include "kinds/table/client/tables.hpp"
#include "kinds/table/schema.hpp"

namespace espalier::client {

/// Stores a value into a row of zeros, if the column can hold it exactly. Returns what is wrong
/// with it, in words; other columns are unchanged.
[[nodiscard]] std::optional<std::string> store_value(const table::Column& column,
                                                     const Value& value, std::byte* row);

class RowWriterImpl {
 public:
  explicit RowWriterImpl(std::shared_ptr<TableImpl> table) : table_(std::move(table)) {}

  [[nodiscard]] const TableImpl& table() const { return *table_; }

  TableResult<void> add(std::span<const Value> values);
  TableResult<std::uint64_t> commit();
  void clear();
  void leave_out_refused() {
    refused_.reset();
    added_ = size();
  }
  [[nodiscard]] std::size_t size() const { return rows_.size() / table_->schema().row_bytes(); }
  [[nodiscard]] std::size_t rows_max() const {
    return TableImpl::kAppendBytesMax / table_->schema().row_bytes();
  }

 private:
  std::unexpected<TableError> refuse_row(std::string words);
  TableResult<std::uint64_t> append_encrypted();

  const std::shared_ptr<TableImpl> table_;
  std::vector<std::byte> rows_;
  std::size_t added_ = 0;  // calls of add(), refused ones included
  std::optional<TableError> refused_;
};

}  // namespace espalier::client

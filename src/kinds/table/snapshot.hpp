// SPDX-License-Identifier: Apache-2.0
// The rows of a table at one moment, page by page: the input of a scan.
//
//   const TableSnapshot snapshot(table);
//   for (std::uint64_t page = 0; page < snapshot.pages(); ++page) {
//     const auto rows = snapshot.page(page);
//     if (!rows) return rows.error();                      // dropped
//     for (std::uint32_t i = 0; i < rows->count; ++i) use((*rows)[i]);
//   }
//
// It reads the row count once, at construction; later appends are not visible. The rows stay valid
// while the snapshot lives, even if the table is dropped: a scan should end then, so that the
// memory is freed.
//
// Thread: const calls from any; the parts of one scan may share a snapshot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kinds/table/table.hpp"

namespace espalier::table {

/// Contiguous rows, aligned to 8; rows of 64 bytes to 64.
struct RowSpan {
  const std::byte* rows = nullptr;
  std::uint32_t count = 0;
  std::uint32_t row_bytes = 0;
  std::uint64_t first_row = 0;  ///< number of the first in the table
  /// Of encrypted rows: position of the first, in counter blocks.
  std::uint64_t cipher_page = 0;
  std::uint64_t page_offset = 0;  ///< bytes from the page's begin

  [[nodiscard]] const std::byte* operator[](std::uint32_t i) const {
    return rows + std::size_t{i} * row_bytes;
  }
  [[nodiscard]] std::size_t bytes() const { return std::size_t{count} * row_bytes; }
};

class TableSnapshot {
 public:
  explicit TableSnapshot(std::shared_ptr<const Table> table);

  [[nodiscard]] const Table& table() const { return *table_; }
  [[nodiscard]] std::uint64_t rows() const { return rows_; }
  /// Pages that hold these rows, numbered from 0.
  [[nodiscard]] std::uint64_t pages() const { return pages_; }

  /// All rows of a page; at least one. Errors: dropped. Requires: page < pages().
  [[nodiscard]] Result<RowSpan> page(std::uint64_t page) const;
  /// The page that holds a row. Cost: a binary search. Requires: row < rows().
  [[nodiscard]] std::uint64_t page_of(std::uint64_t row) const;
  /// The rows from `row` to the end of its page. Errors: dropped. Requires: row < rows().
  [[nodiscard]] Result<RowSpan> rows_from(std::uint64_t row) const;

 private:
  std::shared_ptr<const Table> table_;
  std::uint64_t rows_ = 0;
  std::uint64_t pages_ = 0;
};

}  // namespace espalier::table

// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/snapshot.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace espalier::table {

TableSnapshot::TableSnapshot(std::shared_ptr<const Table> table) : table_(std::move(table)) {
  rows_ = table_->rows();
  // Read after the rows, so it covers them; later appends may have added more.
  pages_ = table_->pages();
  if (rows_ == 0) {
    pages_ = 0;
  } else {
    pages_ = page_of(rows_ - 1) + 1;
  }
}

Result<RowSpan> TableSnapshot::page(std::uint64_t page) const {
  ESPALIER_ASSERT(page < pages_);
  if (table_->dropped()) return fail(Code::dropped);
  const wire::RowPageEntry entry = table_->page(page);
  const std::uint64_t end = page + 1 < pages_ ? table_->page(page + 1).first_row : rows_;
  const std::uint64_t count = end - entry.first_row;
  ESPALIER_ASSERT(count >= 1 && count <= table_->schema().rows_per_page());
  RowSpan span{table_->rows_of(entry), static_cast<std::uint32_t>(count),
               table_->schema().row_bytes(), entry.first_row};
  span.page_offset = sizeof(wire::RowPageHeader);
  if (table_->encrypted()) span.cipher_page = table_->cipher_page(entry);
  return span;
}

std::uint64_t TableSnapshot::page_of(std::uint64_t row) const {
  ESPALIER_ASSERT(row < rows_);
  std::uint64_t low = 0;  // first_row of `low` is at most `row`, that of `high` above
  std::uint64_t high = pages_;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (table_->page(middle).first_row <= row ? low : high) = middle;
  }
  return low;
}

Result<RowSpan> TableSnapshot::rows_from(std::uint64_t row) const {
  auto span = page(page_of(row));
  if (!span) return span;
  const auto before = static_cast<std::uint32_t>(row - span->first_row);
  RowSpan rest{(*span)[before], span->count - before, span->row_bytes, row};
  rest.cipher_page = span->cipher_page;
  rest.page_offset = span->page_offset + std::size_t{before} * span->row_bytes;
  return rest;
}

}  // namespace espalier::table

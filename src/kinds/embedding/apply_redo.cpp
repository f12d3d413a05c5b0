// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/apply_redo.hpp"

#include <span>

#include "base/assert.hpp"
#include "catalog/catalog.hpp"
#include "kinds/embedding/redo_record.hpp"

namespace espalier::embedding {

using catalog::RedoFault;

Result<void> apply_redo(EmbeddingTable& table, std::string_view record) {
  ESPALIER_ASSERT(table.redo() == nullptr);  // the records of what is applied are there
  const auto redo = read_rows_redo(record);
  if (!redo) return std::unexpected(redo.error());
  if (redo->table != table.id()) return catalog::corrupt(RedoFault::object);
  if (table.dropped()) return {};
  if (redo->row_bytes != table.row_bytes()) return catalog::corrupt(RedoFault::count);
  const std::span<const std::byte> rows = std::as_bytes(std::span(redo->bytes));
  const std::uint64_t there = table.rows();
  if (redo->type == RedoType::replaced) {
    if (redo->row >= there) return catalog::corrupt(RedoFault::place);
    return table.replace(redo->row, rows);
  }
  if (redo->row > there) return catalog::corrupt(RedoFault::place);
  if (redo->row + redo->rows <= there) return {};
  const std::uint64_t known = there - redo->row;
  const auto done = table.append(rows.subspan(known * redo->row_bytes));
  return done ? Result<void>() : std::unexpected(done.error());
}

}  // namespace espalier::embedding

// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/apply_redo.hpp"

#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "catalog/catalog.hpp"
#include "kinds/embedding/grouping.hpp"
#include "kinds/embedding/query_lists.hpp"
#include "kinds/embedding/redo_record.hpp"

namespace espalier::embedding {

using catalog::RedoFault;

namespace {

// Sums are computed with the last part, from the current rows; later records of rows update them.
Result<void> apply_groups_part(EmbeddingTable& table, std::string_view record) {
  const auto redo = read_groups_redo(record);
  if (!redo) return std::unexpected(redo.error());
  if (redo->table != table.id()) return catalog::corrupt(RedoFault::object);
  if (table.dropped()) return {};
  std::unique_ptr<GroupLists>& gathered = table.told_groups();
  if (redo->first) gathered = std::make_unique<GroupLists>();
  // The first part precedes the checkpoint, which then has these groups, too.
  if (gathered == nullptr) return {};
  if (redo->rows > table.rows() - gathered->rows.size()) return catalog::corrupt(RedoFault::count);
  const std::size_t before = gathered->rows.size();
  gathered->rows.resize(before + redo->rows);
  if (redo->rows != 0) {
    std::memcpy(gathered->rows.data() + before, redo->ids.data(), redo->ids.size());
  }
  gathered->sizes.insert(gathered->sizes.end(), redo->sizes.begin(), redo->sizes.end());
  if (!redo->last) return {};
  const std::unique_ptr<GroupLists> groups = std::move(gathered);
  const auto made = group_rows(table, groups->get());
  if (made) return {};
  const Error& error = made.error().error;
  if (error.code == Code::invalid_argument) return catalog::corrupt(RedoFault::place);
  return std::unexpected(error);
}

}  // namespace

Result<void> apply_redo(EmbeddingTable& table, std::string_view record) {
  ESPALIER_ASSERT(table.redo() == nullptr);  // else its own changes would be logged again
  if (is_of_groups(record)) return apply_groups_part(table, record);
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

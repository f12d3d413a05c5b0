// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/offload/table_copy.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "catalog/catalog.hpp"
#include "engine/planted_engine_bugs.hpp"
#include "kinds/table/redo_record.hpp"
#include "kinds/table/snapshot.hpp"
#include "kinds/table/table.hpp"

namespace espalier::offload {
namespace {

/// The rows that are visible once all are whose records were handed over when it began.
class TableCopy final : public ObjectCopy {
 public:
  explicit TableCopy(std::shared_ptr<table::Table> table)
      : table_(std::move(table)), wait_for_(table_->recorded_rows()) {}

  Result<CopyStep> next(CopyPiece& piece) override {
    if (!rows_) {
      const bool is_visible = table_->rows() >= wait_for_;
      if (!is_visible && !planted(Bug::copy_waits_for_nothing)) return CopyStep::wait;
      if (table_->encrypted() && !slots_) slots_ = table_->given_slots();
      if (table_->encrypted() && !slots_) return CopyStep::wait;
      rows_.emplace(table_);
    }
    while (row_ < rows_->rows()) {
      if (piece.full()) return CopyStep::more;
      const auto rows = rows_->rows_from(row_);
      if (!rows) return CopyStep::done;  // it was dropped
      add(piece, *rows);
    }
    if (slots_ && !planted(Bug::copy_without_slots)) add_slots(piece);
    return CopyStep::done;
  }

 private:
  void add(CopyPiece& piece, const table::RowSpan& rows) {
    const std::uint64_t most = std::max<std::uint64_t>(1, piece.usual_bytes() / rows.row_bytes);
    table::AppendedRecord record{};
    record.first_row = row_;
    record.rows = std::min<std::uint64_t>(rows.count, most);
    record.row_bytes = rows.row_bytes;
    if (table_->encrypted()) {
      const bool begins_page = rows.page_offset == sizeof(wire::RowPageHeader);
      record.cipher_page = begins_page ? rows.cipher_page : 0;
      record.tail_rows = begins_page ? 0 : static_cast<std::uint32_t>(record.rows);
    }
    const std::size_t bytes = record.rows * rows.row_bytes;
    record.head = catalog::redo_head(ObjectKind::table, table_->id(),
                                     static_cast<std::uint8_t>(table::RedoType::appended),
                                     sizeof record + bytes);
    const auto room = piece.add(sizeof record + bytes);
    if (room.empty()) return;
    catalog::RedoWriter writer(room);
    writer.part(record);
    writer.text({reinterpret_cast<const char*>(rows.rows), bytes});
    row_ += record.rows;
  }

  // Below which all numbers of pages were given, and whether slots behind the rows were: rows that
  // came since are in later records.
  void add_slots(CopyPiece& piece) {
    const auto room = piece.add(sizeof(table::ReservedRecord));
    if (room.empty()) return;
    table::write_reserved(room, table_->id(), rows_->rows(), slots_->next_cipher_page,
                          slots_->tail_used);
  }

  const std::shared_ptr<table::Table> table_;
  const std::uint64_t wait_for_;
  std::optional<table::Table::GivenSlots> slots_;  // of an encrypted table
  std::optional<table::TableSnapshot> rows_;
  std::uint64_t row_ = 0;
};

}  // namespace

Result<std::unique_ptr<ObjectCopy>> copy_a_table(
    Services&, const std::shared_ptr<const catalog::Entry>& entry) {
  auto table = std::static_pointer_cast<table::Table>(entry->object);
  return std::make_unique<TableCopy>(std::move(table));
}

}  // namespace espalier::offload

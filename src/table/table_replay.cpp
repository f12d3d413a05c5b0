// SPDX-License-Identifier: Apache-2.0
#include "table/table_replay.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "table/redo_record.hpp"
#include "table/table_growth.hpp"

namespace espalier::table {

using catalog::RedoFault;

/// What a table lets nobody else do: to give slots that a record names.
class TableReplay {
 public:
  explicit TableReplay(Table& table) : table_(table) {}

  Result<void> apply(const ReservedRecord& record) {
    if (!table_.encrypted()) return catalog::corrupt(RedoFault::type);
    if (record.rows_before > table_.rows()) return catalog::corrupt(RedoFault::place);
    const AppendTurn::Held turn = table_.append_turn_.take();
    table_.next_cipher_page_ = std::max(table_.next_cipher_page_, record.next_cipher_page);
    // Once more rows are there they fill those slots, or the page was closed before them.
    if (record.tail_used != 0 && record.rows_before == table_.rows()) table_.tail_closed_ = true;
    return {};
  }

  Result<void> apply(const AppendedRows& appended) {
    const AppendedRecord& record = appended.fields;
    if (record.row_bytes != table_.schema().row_bytes()) return catalog::corrupt(RedoFault::count);
    const std::uint64_t there = table_.rows();
    if (record.first_row > there) return catalog::corrupt(RedoFault::place);
    if (record.first_row + record.rows <= there) return {};
    if (table_.encrypted()) return fill(appended);
    if (record.tail_rows != 0 || record.cipher_page != 0) return catalog::corrupt(RedoFault::value);
    const std::uint64_t known = there - record.first_row;
    const auto done = table_.append(bytes_of(appended).subspan(known * record.row_bytes));
    if (done) return {};
    // Rows of a table are such as it takes.
    if (done.error().wrong_rows != 0) return catalog::corrupt(RedoFault::value);
    return std::unexpected(done.error().error);
  }

 private:
  static std::span<const std::byte> bytes_of(const AppendedRows& appended) {
    return std::as_bytes(std::span(appended.rows));
  }

  // Reserves the slots in which the rows were, and fills them.
  Result<void> fill(const AppendedRows& appended) {
    const AppendedRecord& record = appended.fields;
    if (record.first_row != table_.rows()) return catalog::corrupt(RedoFault::place);
    std::uint64_t number = 0;
    {
      const AppendTurn::Held turn = table_.append_turn_.take();
      const bool closed = std::exchange(table_.tail_closed_, record.tail_rows == 0);
      auto growth = std::make_unique<Table::Growth>();
      if (const auto reserved = reserve(record, *growth); !reserved) {
        table_.tail_closed_ = closed;
        table_.give_back(*growth);
        return reserved;
      }
      table_.reserved_ = std::move(growth);
      table_.reserver_ = process_reserver();
      table_.reserved_rows_ = record.rows;
      number = ++table_.reservation_;
    }
    const auto filled = table_.append_reserved(number, bytes_of(appended));
    return filled ? Result<void>() : std::unexpected(filled.error());
  }

  Result<void> reserve(const AppendedRecord& record, Table::Growth& growth) {
    if (const auto reserved = table_.reserve(record.rows, growth); !reserved) return reserved;
    if (std::min(record.rows, growth.tail_rooms) != record.tail_rows) {
      return catalog::corrupt(RedoFault::place);
    }
    growth.cipher_page = record.cipher_page;
    table_.next_cipher_page_ =
        std::max(table_.next_cipher_page_, record.cipher_page + growth.pages.size());
    return {};
  }

  Table& table_;
};

Result<void> apply_redo(Table& table, std::string_view record) {
  ESPALIER_ASSERT(table.redo() == nullptr);  // the records of what is applied are there
  ESPALIER_ASSERT(reinterpret_cast<std::uintptr_t>(record.data()) % wire::kRowAlignment == 0);
  const auto head = catalog::read_redo_head(record);
  if (!head) return std::unexpected(head.error());
  if (head->object != table.id()) return catalog::corrupt(RedoFault::object);
  if (table.dropped()) return fail(Code::dropped);
  TableReplay replay(table);
  if (head->type == static_cast<std::uint8_t>(RedoType::reserved)) {
    const auto reserved = read_reserved(record);
    return reserved ? replay.apply(*reserved) : std::unexpected(reserved.error());
  }
  const auto appended = read_appended(record);
  return appended ? replay.apply(*appended) : std::unexpected(appended.error());
}

}  // namespace espalier::table

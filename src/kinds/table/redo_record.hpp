// SPDX-License-Identifier: Apache-2.0
// Redo records of appended rows, and of reserved slots (docs/formats/records.md).
//
//   appended   0      16          24     32            40          44          48
//              +------+-----------+------+-------------+-----------+-----------+------
//              | head | first row | rows | cipher page | row bytes | tail rows | rows
//              +------+-----------+------+-------------+-----------+-----------+------
//   reserved   0      16            24                 32             36
//              +------+-------------+------------------+--------------+----------+
//              | head | rows before | next cipher page | tail is used | reserved |
//              +------+-------------+------------------+--------------+----------+
//
// Rows are copied verbatim, so those of an encrypted table are cipher text, valid only in its own
// slots: hence the record has the page's number in counter blocks, and the number of rows that
// still fit the page before.
//
// Thread: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "catalog/redo_record.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::table {

/// The types of a table's records.
enum class RedoType : std::uint8_t {
  invalid = 0,
  appended = catalog::kOwnRedoTypes,
  reserved = 17,  // slots of an encrypted table, never issued again
};

struct AppendedRecord {
  catalog::RedoHead head;
  std::uint64_t first_row;
  std::uint64_t rows;
  std::uint64_t cipher_page;  // encrypted tables: of the first new page, if any
  std::uint32_t row_bytes;
  std::uint32_t tail_rows;  // encrypted tables: rows in the page before
};
static_assert(sizeof(AppendedRecord) == 48 && offsetof(AppendedRecord, first_row) == 16);
static_assert(offsetof(AppendedRecord, rows) == 24 && offsetof(AppendedRecord, cipher_page) == 32);
static_assert(offsetof(AppendedRecord, row_bytes) == 40);
static_assert(offsetof(AppendedRecord, tail_rows) == 44);
static_assert(std::has_unique_object_representations_v<AppendedRecord>);

struct ReservedRecord {
  catalog::RedoHead head;
  std::uint64_t rows_before;       // visible ones
  std::uint64_t next_cipher_page;  // all below were issued
  std::uint32_t tail_used;         // 1: slots of the last page were issued, too
  std::uint32_t reserved;
};
static_assert(sizeof(ReservedRecord) == 40 && offsetof(ReservedRecord, rows_before) == 16);
static_assert(offsetof(ReservedRecord, next_cipher_page) == 24);
static_assert(offsetof(ReservedRecord, tail_used) == 32 &&
              offsetof(ReservedRecord, reserved) == 36);
static_assert(std::has_unique_object_representations_v<ReservedRecord>);

/// No table issues so many page numbers, and as many remain above it.
inline constexpr std::uint64_t kCipherPageMax = ~std::uint64_t{0} >> 1;

/// Writes a record of reserved slots. Requires: as many bytes as ReservedRecord has.
inline void write_reserved(std::span<std::byte> to, std::uint32_t table, std::uint64_t rows_before,
                           std::uint64_t next_cipher_page, bool tail_used) {
  ReservedRecord record{};
  record.head = catalog::redo_head(ObjectKind::table, table,
                                   static_cast<std::uint8_t>(RedoType::reserved), sizeof record);
  record.rows_before = rows_before;
  record.next_cipher_page = next_cipher_page;
  record.tail_used = tail_used ? 1 : 0;
  catalog::RedoWriter(to).part(record);
}

/// A parsed append. Its rows point into the record.
struct AppendedRows {
  AppendedRecord fields{};
  std::string_view rows;
};

namespace detail {

[[nodiscard]] inline Result<void> check_redo(std::string_view record, RedoType type) {
  using catalog::RedoFault;
  const auto head = catalog::read_redo_head(record, ObjectKind::table);
  if (!head) return std::unexpected(head.error());
  if (head->type != static_cast<std::uint8_t>(type)) return catalog::corrupt(RedoFault::type);
  if (head->object == 0) return catalog::corrupt(RedoFault::object);
  return {};
}

}  // namespace detail

/// Parses a record of appended rows, of any bytes. Errors: corrupt (detail: a catalog::RedoFault).
[[nodiscard]] inline Result<AppendedRows> read_appended(std::string_view record) {
  using catalog::RedoFault;
  if (const auto good = detail::check_redo(record, RedoType::appended); !good) {
    return std::unexpected(good.error());
  }
  wire::PayloadReader reader(record);
  const AppendedRows appended{reader.take<AppendedRecord>(), reader.rest()};
  const AppendedRecord& fields = appended.fields;
  if (!reader.good()) return catalog::corrupt(RedoFault::too_short);
  if (fields.row_bytes == 0 || fields.rows == 0 || fields.tail_rows > fields.rows ||
      fields.rows != appended.rows.size() / fields.row_bytes ||
      appended.rows.size() % fields.row_bytes != 0) {
    return catalog::corrupt(RedoFault::count);
  }
  if (fields.first_row > ~fields.rows) return catalog::corrupt(RedoFault::place);
  if (fields.cipher_page > kCipherPageMax) return catalog::corrupt(RedoFault::value);
  return appended;
}

/// Parses a record of reserved slots, of any bytes. Errors: likewise.
[[nodiscard]] inline Result<ReservedRecord> read_reserved(std::string_view record) {
  using catalog::RedoFault;
  if (const auto good = detail::check_redo(record, RedoType::reserved); !good) {
    return std::unexpected(good.error());
  }
  wire::PayloadReader reader(record);
  const auto fields = reader.take<ReservedRecord>();
  if (!reader.good()) return catalog::corrupt(RedoFault::too_short);
  if (!reader.complete()) return catalog::corrupt(RedoFault::bytes);
  if (fields.reserved != 0) return catalog::corrupt(RedoFault::reserved);
  if (fields.tail_used > 1 || fields.next_cipher_page > kCipherPageMax) {
    return catalog::corrupt(RedoFault::value);
  }
  return fields;
}

}  // namespace espalier::table

// SPDX-License-Identifier: Apache-2.0
// Records of rows that were appended to an embedding table, and of one that was replaced
// (docs/formats/records.md).
//
//   0      16    24     32          36         40
//   +------+-----+------+-----------+----------+------
//   | head | row | rows | row bytes | reserved | rows
//   +------+-----+------+-----------+----------+------
//
// Rows stand there as they lie in the table. Of rows that were appended, `row` is the first.
//
// Thread: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "catalog/redo_record.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::embedding {

/// The types of an embedding table's records.
enum class RedoType : std::uint8_t {
  invalid = 0,
  appended = catalog::kOwnRedoTypes,
  replaced = 17,
};

struct RowsRecord {
  catalog::RedoHead head;
  std::uint64_t row;
  std::uint64_t rows;  // 1 where one was replaced
  std::uint32_t row_bytes;
  std::uint32_t reserved;
};
static_assert(sizeof(RowsRecord) == 40 && offsetof(RowsRecord, row) == 16);
static_assert(offsetof(RowsRecord, rows) == 24 && offsetof(RowsRecord, row_bytes) == 32);
static_assert(offsetof(RowsRecord, reserved) == 36);
static_assert(std::has_unique_object_representations_v<RowsRecord>);

/// Rows as their record says. Points into it.
struct RowsRedo {
  std::uint32_t table = 0;
  RedoType type = RedoType::invalid;
  std::uint64_t row = 0;
  std::uint64_t rows = 0;
  std::uint32_t row_bytes = 0;
  std::string_view bytes;
};

/// Reads a record from any bytes. Errors: corrupt (detail: a catalog::RedoFault).
[[nodiscard]] inline Result<RowsRedo> read_rows_redo(std::string_view record) {
  using catalog::RedoFault;
  const auto head = catalog::read_redo_head(record, ObjectKind::embedding);
  if (!head) return std::unexpected(head.error());
  const auto type = static_cast<RedoType>(head->type);
  if (type != RedoType::appended && type != RedoType::replaced) {
    return catalog::corrupt(RedoFault::type);
  }
  if (head->object == 0) return catalog::corrupt(RedoFault::object);
  wire::PayloadReader reader(record);
  const auto fields = reader.take<RowsRecord>();
  if (!reader.good()) return catalog::corrupt(RedoFault::too_short);
  if (fields.reserved != 0) return catalog::corrupt(RedoFault::reserved);
  const RowsRedo redo{head->object, type, fields.row, fields.rows, fields.row_bytes, reader.rest()};
  if (redo.rows == 0 || redo.row_bytes == 0 || redo.rows != redo.bytes.size() / redo.row_bytes ||
      redo.bytes.size() % redo.row_bytes != 0 || (type == RedoType::replaced && redo.rows != 1)) {
    return catalog::corrupt(RedoFault::count);
  }
  if (redo.row > ~redo.rows) return catalog::corrupt(RedoFault::place);
  return redo;
}

}  // namespace espalier::embedding

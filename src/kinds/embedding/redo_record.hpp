// SPDX-License-Identifier: Apache-2.0
// Redo records of an embedding table: rows appended, a row replaced, and groups of rows
// (docs/formats/records.md).
//
//   0      16    24     32          36         40
//   +------+-----+------+-----------+----------+------
//   | head | row | rows | row bytes | reserved | rows
//   +------+-----+------+-----------+----------+------
//
// Rows are in the table's format. Of appended rows, `row` is the first.
//
//   0      16     20       24      28         32
//   +------+------+--------+-------+----------+-----+-------
//   | head | rows | groups | parts | reserved | ids | sizes
//   +------+------+--------+-------+----------+-----+-------
//
// Groups are logged in parts, with a first and a last one: then these groups are the table's. Sums
// are not logged.
//
// Thread: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>

#include "catalog/redo_record.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::embedding {

/// The types of an embedding table's records.
enum class RedoType : std::uint8_t {
  invalid = 0,
  appended = catalog::kOwnRedoTypes,
  replaced = 17,
  grouped = 18,
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

struct GroupsRecord {
  catalog::RedoHead head;
  std::uint32_t rows;    // ids, of all groups of this part
  std::uint32_t groups;  // sizes, a byte each
  std::uint32_t parts;   // kFirstPart, kLastPart
  std::uint32_t reserved;
};
static_assert(sizeof(GroupsRecord) == 32 && offsetof(GroupsRecord, rows) == 16);
static_assert(offsetof(GroupsRecord, groups) == 20 && offsetof(GroupsRecord, parts) == 24);
static_assert(std::has_unique_object_representations_v<GroupsRecord>);
inline constexpr std::uint32_t kFirstPart = 1;
inline constexpr std::uint32_t kLastPart = 2;

/// Rows as parsed from their record, into which it points.
struct RowsRedo {
  std::uint32_t table = 0;
  RedoType type = RedoType::invalid;
  std::uint64_t row = 0;
  std::uint64_t rows = 0;
  std::uint32_t row_bytes = 0;
  std::string_view bytes;
};

/// Parses a record of arbitrary bytes. Errors: corrupt (detail: a catalog::RedoFault).
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

/// Whether a record of arbitrary bytes has the type of groups.
[[nodiscard]] inline bool is_of_groups(std::string_view record) {
  const auto head = catalog::read_redo_head(record, ObjectKind::embedding);
  return head && head->type == static_cast<std::uint8_t>(RedoType::grouped);
}

/// A part of a table's groups, to be logged.
struct GroupsPart {
  bool first;
  bool last;
  std::span<const std::uint32_t> rows;
  std::span<const std::uint8_t> sizes;

  [[nodiscard]] std::size_t bytes() const {
    return sizeof(GroupsRecord) + rows.size_bytes() + sizes.size();
  }
  /// Requires: so many bytes.
  void write(std::span<std::byte> to, std::uint32_t table) const {
    GroupsRecord record{};
    record.head = catalog::redo_head(ObjectKind::embedding, table,
                                     static_cast<std::uint8_t>(RedoType::grouped), bytes());
    record.rows = static_cast<std::uint32_t>(rows.size());
    record.groups = static_cast<std::uint32_t>(sizes.size());
    record.parts = (first ? kFirstPart : 0) | (last ? kLastPart : 0);
    catalog::RedoWriter writer(to);
    writer.part(record);
    writer.text({reinterpret_cast<const char*>(rows.data()), rows.size_bytes()});
    writer.text({reinterpret_cast<const char*>(sizes.data()), sizes.size()});
  }
};

/// The same as parsed from its record, into which it points.
struct GroupsRedo {
  std::uint32_t table = 0;
  bool first = false;
  bool last = false;
  std::uint32_t rows = 0;
  std::string_view ids;    // 4 bytes each
  std::string_view sizes;  // a byte each
};

/// Parses a record of arbitrary bytes. Errors: corrupt (detail: a catalog::RedoFault).
[[nodiscard]] inline Result<GroupsRedo> read_groups_redo(std::string_view record) {
  using catalog::RedoFault;
  const auto head = catalog::read_redo_head(record, ObjectKind::embedding);
  if (!head) return std::unexpected(head.error());
  if (head->type != static_cast<std::uint8_t>(RedoType::grouped)) {
    return catalog::corrupt(RedoFault::type);
  }
  if (head->object == 0) return catalog::corrupt(RedoFault::object);
  wire::PayloadReader reader(record);
  const auto fields = reader.take<GroupsRecord>();
  if (!reader.good()) return catalog::corrupt(RedoFault::too_short);
  if (fields.reserved != 0 || fields.parts > (kFirstPart | kLastPart)) {
    return catalog::corrupt(RedoFault::reserved);
  }
  const std::string_view rest = reader.rest();
  const std::size_t id_bytes = std::size_t{fields.rows} * sizeof(std::uint32_t);
  if (rest.size() < id_bytes || rest.size() - id_bytes != fields.groups) {
    return catalog::corrupt(RedoFault::count);
  }
  const GroupsRedo redo{
      head->object, (fields.parts & kFirstPart) != 0, (fields.parts & kLastPart) != 0,
      fields.rows,  rest.substr(0, id_bytes),         rest.substr(id_bytes)};
  const std::uint64_t members = std::accumulate(
      redo.sizes.begin(), redo.sizes.end(), std::uint64_t{0},
      [](std::uint64_t sum, char size) { return sum + static_cast<std::uint8_t>(size); });
  if (members != redo.rows) return catalog::corrupt(RedoFault::count);
  return redo;
}

}  // namespace espalier::embedding

// SPDX-License-Identifier: Apache-2.0
// Schema of a table: columns, their types, and their layout in a row.
//
//   a i64 not null, b decimal(12,2), c text(20)
//
//   0        8        16  18             38 39 40
//   +--------+--------+---+--------------+--+--+
//   | a      | b      | n | text of c    |nb|  |      nb: null bits, b's is 1, c's is 2
//   +--------+--------+---+--------------+--+--+
//
// Text form: columns separated by commas, each a name, a type, and `not null` or `null`, the
// default. Names fold to lower case unless in double quotes, as in SQL.
//
//   i8 i16 i32 i64      also smallint, int, integer, bigint
//   float double        also real
//   decimal(p) decimal(p,s), p <= 18    also numeric
//   date timestamp
//   bool                also boolean
//   char(n) text(n), n <= 1024          also varchar(n)
//
// Invariants
// 1. A Schema has 1 to 256 columns with names that differ, and rows of at most 32 KiB.
// 2. parse(to_text()) and decode(encode()) give an equal schema.
//
// Thread: values; safe to read from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/error.hpp"
#include "kinds/table/format/table.hpp"

namespace espalier::table {

using wire::ColumnType;

/// A type with its limits. Members that a type does not use are 0.
struct Type {
  ColumnType kind = ColumnType::invalid;
  std::uint8_t precision = 0;  ///< decimal: digits in all
  std::uint8_t scale = 0;      ///< decimal: digits behind the point
  std::uint16_t length = 0;    ///< char, text: bytes

  friend bool operator==(const Type&, const Type&) = default;
};

/// Whether it is a type: within its limits, and nothing else set.
[[nodiscard]] bool is_valid(const Type& type);
/// Bytes that a value takes in a row. Requires: is_valid(type).
[[nodiscard]] std::uint32_t stored_bytes(const Type& type);
/// Requires: is_valid(type).
[[nodiscard]] std::uint32_t alignment(const Type& type);
/// As in the text form, e.g. "decimal(12,2)".
[[nodiscard]] std::string to_text(const Type& type);
/// 10^n. Requires: n <= 18.
[[nodiscard]] std::int64_t power_of_ten(unsigned n);

/// Specification of a column.
struct ColumnSpec {
  std::string name;
  Type type;
  bool nullable = true;
};

/// A column and its layout.
struct Column {
  std::string name;
  Type type;
  bool nullable = true;
  std::uint32_t offset = 0;     ///< of its value in the row
  std::uint32_t bytes = 0;      ///< of its value, a text's length included
  std::uint32_t null_byte = 0;  ///< offset of the byte with its null bit
  std::uint8_t null_mask = 0;   ///< that bit; 0 if it is not nullable, and then never null

  friend bool operator==(const Column&, const Column&) = default;
};

/// A mistake in a schema, in words for people.
struct SchemaError {
  std::size_t position = 0;  ///< of the text's byte, from 0; of make(): number of the column
  std::string reason;
};

class Schema {
 public:
  /// Errors: limits; names that are empty, too long, repeated, or contain control characters.
  static std::expected<Schema, SchemaError> make(std::span<const ColumnSpec> columns);
  /// Reads the text form.
  static std::expected<Schema, SchemaError> parse(std::string_view text);
  /// Parses encode()'s output, from any bytes. Errors: corrupt.
  static Result<Schema> decode(std::span<const std::byte> bytes);

  /// Size of encode()'s output: at most wire::kSchemaBytesMax.
  [[nodiscard]] std::size_t encoded_bytes() const;
  /// Requires: `out` has encoded_bytes().
  void encode(std::span<std::byte> out) const;
  [[nodiscard]] std::string to_text() const;

  [[nodiscard]] std::span<const Column> columns() const { return columns_; }
  [[nodiscard]] const Column& column(std::size_t i) const { return columns_[i]; }
  /// The number of the column of exactly this name.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;

  [[nodiscard]] std::uint32_t row_bytes() const { return row_bytes_; }
  /// Where the null bits begin, and how many bytes have some.
  [[nodiscard]] std::uint32_t null_offset() const { return null_offset_; }
  [[nodiscard]] std::uint32_t null_bytes() const { return null_bytes_; }
  [[nodiscard]] std::uint32_t rows_per_page() const {
    return static_cast<std::uint32_t>((wire::kRowPageBytes - sizeof(wire::RowPageHeader)) /
                                      row_bytes_);
  }

  friend bool operator==(const Schema&, const Schema&) = default;

 private:
  Schema() = default;

  std::vector<Column> columns_;
  std::uint32_t row_bytes_ = 0;
  std::uint32_t null_offset_ = 0;
  std::uint32_t null_bytes_ = 0;
};

/// A name in the text form: quoted unless it reads back without quotes.
[[nodiscard]] std::string quoted_name(std::string_view name);

}  // namespace espalier::table

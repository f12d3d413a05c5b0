// SPDX-License-Identifier: Apache-2.0
// Access to values in the bytes of one row (kinds/table/schema.hpp).
//
// Loads accept any bytes: they clamp lengths, and read nothing outside the row. They ignore null
// bits; a null's value is 0 or empty in appended rows, and unspecified elsewhere. Stores keep a
// canonical row canonical (kinds/table/row_check.hpp): they refuse values that the column cannot
// hold, and then change nothing.
//
// Thread: as the row's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kinds/table/schema.hpp"

namespace espalier::table {

[[nodiscard]] inline bool is_null(const Column& column, const std::byte* row) {
  return (std::to_integer<std::uint8_t>(row[column.null_byte]) & column.null_mask) != 0;
}

/// Whether load_integer() and store_integer() serve the type: integers, decimals (as multiples of
/// 10^-scale), dates, timestamps, and bools as 0 and 1.
[[nodiscard]] constexpr bool is_integral(ColumnType type) {
  return type == ColumnType::i8 || type == ColumnType::i16 || type == ColumnType::i32 ||
         type == ColumnType::i64 || type == ColumnType::decimal || type == ColumnType::date ||
         type == ColumnType::timestamp || type == ColumnType::boolean;
}
[[nodiscard]] constexpr bool is_floating(ColumnType type) {
  return type == ColumnType::f32 || type == ColumnType::f64;
}
[[nodiscard]] constexpr bool is_textual(ColumnType type) {
  return type == ColumnType::fixed_char || type == ColumnType::text;
}

/// Requires: is_integral.
[[nodiscard]] std::int64_t load_integer(const Column& column, const std::byte* row);
/// Requires: is_floating.
[[nodiscard]] double load_floating(const Column& column, const std::byte* row);
/// Loads a char without its trailing blanks. Points into the row. Requires: is_textual.
[[nodiscard]] std::string_view load_text(const Column& column, const std::byte* row);

/// Range of a column type. Requires: is_integral.
struct IntegerRange {
  std::int64_t low;
  std::int64_t high;
};
[[nodiscard]] IntegerRange range_of(const Type& type);

/// False: the column is not nullable.
[[nodiscard]] bool store_null(const Column& column, std::byte* row);
/// False: outside range_of(). Requires: is_integral.
[[nodiscard]] bool store_integer(const Column& column, std::byte* row, std::int64_t value);
/// False: finite, and too large for a float. Requires: is_floating.
[[nodiscard]] bool store_floating(const Column& column, std::byte* row, double value);
/// False: too long; a char's trailing blanks do not count. Requires: is_textual.
[[nodiscard]] bool store_text(const Column& column, std::byte* row, std::string_view text);

}  // namespace espalier::table

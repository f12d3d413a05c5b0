// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/row_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"

namespace espalier::table {
namespace {

using base::load_plain;
using base::store_plain;

std::string_view without_trailing_blanks(std::string_view text) {
  const std::size_t last = text.find_last_not_of(' ');
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

void clear_null(const Column& column, std::byte* row) {
  row[column.null_byte] &= static_cast<std::byte>(~column.null_mask);
}

template <class T>
constexpr IntegerRange whole_range() {
  return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
}

}  // namespace

std::int64_t load_integer(const Column& column, const std::byte* row) {
  const std::byte* const at = row + column.offset;
  switch (column.type.kind) {
    case ColumnType::i8: return load_plain<std::int8_t>(at);
    case ColumnType::i16: return load_plain<std::int16_t>(at);
    case ColumnType::i32:
    case ColumnType::date: return load_plain<std::int32_t>(at);
    case ColumnType::i64:
    case ColumnType::decimal:
    case ColumnType::timestamp: return load_plain<std::int64_t>(at);
    case ColumnType::boolean: return *at != std::byte{0} ? 1 : 0;
    default: break;
  }
  ESPALIER_ASSERT(is_integral(column.type.kind));
  return 0;
}

double load_floating(const Column& column, const std::byte* row) {
  ESPALIER_ASSERT(is_floating(column.type.kind));
  const std::byte* const at = row + column.offset;
  return column.type.kind == ColumnType::f32 ? double{load_plain<float>(at)}
                                             : load_plain<double>(at);
}

std::string_view load_text(const Column& column, const std::byte* row) {
  ESPALIER_ASSERT(is_textual(column.type.kind));
  const auto* const at = reinterpret_cast<const char*>(row + column.offset);
  if (column.type.kind == ColumnType::fixed_char) {
    return without_trailing_blanks({at, column.type.length});
  }
  const auto length = load_plain<std::uint16_t>(row + column.offset);
  return {at + 2, std::min(length, column.type.length)};
}

IntegerRange range_of(const Type& type) {
  switch (type.kind) {
    case ColumnType::i8: return whole_range<std::int8_t>();
    case ColumnType::i16: return whole_range<std::int16_t>();
    case ColumnType::i32: return whole_range<std::int32_t>();
    case ColumnType::i64: return whole_range<std::int64_t>();
    case ColumnType::date: return {wire::kDateMin, wire::kDateMax};
    case ColumnType::timestamp: return {wire::kTimestampMin, wire::kTimestampMax};
    case ColumnType::boolean: return {0, 1};
    case ColumnType::decimal: {
      const std::int64_t limit = power_of_ten(type.precision) - 1;
      return {-limit, limit};
    }
    default: break;
  }
  ESPALIER_ASSERT(is_integral(type.kind));
  return {0, 0};
}

bool store_null(const Column& column, std::byte* row) {
  if (!column.nullable) return false;
  std::memset(row + column.offset, 0, column.bytes);
  row[column.null_byte] |= static_cast<std::byte>(column.null_mask);
  return true;
}

bool store_integer(const Column& column, std::byte* row, std::int64_t value) {
  const IntegerRange range = range_of(column.type);
  if (value < range.low || value > range.high) return false;
  std::memcpy(row + column.offset, &value, column.bytes);  // little-endian
  clear_null(column, row);
  return true;
}

bool store_floating(const Column& column, std::byte* row, double value) {
  ESPALIER_ASSERT(is_floating(column.type.kind));
  if (column.type.kind == ColumnType::f32) {
    if (std::isfinite(value) && std::abs(value) > double{std::numeric_limits<float>::max()}) {
      return false;
    }
    store_plain(row + column.offset, static_cast<float>(value));
  } else {
    store_plain(row + column.offset, value);
  }
  clear_null(column, row);
  return true;
}

bool store_text(const Column& column, std::byte* row, std::string_view text) {
  ESPALIER_ASSERT(is_textual(column.type.kind));
  const bool fixed = column.type.kind == ColumnType::fixed_char;
  if (fixed) text = without_trailing_blanks(text);
  if (text.size() > column.type.length) return false;
  std::byte* at = row + column.offset;
  if (!fixed) {
    store_plain(at, static_cast<std::uint16_t>(text.size()));
    at += 2;
  }
  if (!text.empty()) std::memcpy(at, text.data(), text.size());
  std::memset(at + text.size(), fixed ? ' ' : 0, column.type.length - text.size());
  clear_null(column, row);
  return true;
}

}  // namespace espalier::table

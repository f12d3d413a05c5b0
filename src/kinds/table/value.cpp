// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/value.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "base/bytes.hpp"
#include "kinds/table/date_text.hpp"

namespace espalier::table {
namespace {

using wire::ValueKind;

std::string_view text_at(const std::byte* at, std::size_t bytes) {
  return {reinterpret_cast<const char*>(at), bytes};
}

Wide scaled(const Value& value, unsigned from, unsigned to) {
  return value.number * power_of_ten(to - from);
}

}  // namespace

double as_real(const Value& value, const ValueType& type) {
  if (type.kind == ValueKind::real) return value.real;
  const auto digits = static_cast<double>(value.number);
  return type.scale == 0 ? digits : digits / static_cast<double>(power_of_ten(type.scale));
}

int compare_values(const Value& a, const ValueType& a_type, const Value& b,
                   const ValueType& b_type) {
  ESPALIER_ASSERT(!a.null && !b.null);
  if (a_type.kind == ValueKind::text) return base::compare(a.text, b.text);
  if (a_type.kind == ValueKind::real || b_type.kind == ValueKind::real) {
    return compare_reals(as_real(a, a_type), as_real(b, b_type));
  }
  const unsigned scale = std::max(a_type.scale, b_type.scale);
  const Wide left = scaled(a, a_type.scale, scale);
  const Wide right = scaled(b, b_type.scale, scale);
  return (left > right) - (left < right);
}

Value read_value(const Column& column, const std::byte* row) {
  if ((std::to_integer<std::uint8_t>(row[column.null_byte]) & column.null_mask) != 0) return {};
  const std::byte* at = row + column.offset;
  switch (column.type.kind) {
    case ColumnType::i8: return Value::of(base::load_plain<std::int8_t>(at));
    case ColumnType::i16: return Value::of(base::load_plain<std::int16_t>(at));
    case ColumnType::i32:
    case ColumnType::date: return Value::of(base::load_plain<std::int32_t>(at));
    case ColumnType::i64:
    case ColumnType::decimal:
    case ColumnType::timestamp: return Value::of(base::load_plain<std::int64_t>(at));
    case ColumnType::f32: return Value::of_real(double{base::load_plain<float>(at)});
    case ColumnType::f64: return Value::of_real(base::load_plain<double>(at));
    case ColumnType::boolean: return Value::of(*at == std::byte{0} ? 0 : 1);
    case ColumnType::fixed_char: {
      std::string_view text = text_at(at, column.type.length);
      while (text.ends_with(' ')) text.remove_suffix(1);
      return Value::of_text(text);
    }
    case ColumnType::text: {
      const auto bytes = std::min(base::load_plain<std::uint16_t>(at), column.type.length);
      return Value::of_text(text_at(at + 2, bytes));
    }
    case ColumnType::invalid: break;
  }
  std::unreachable();
}

void write_value(const Column& column, const Value& value, std::byte* row) {
  ESPALIER_ASSERT(!value.null || column.nullable);
  if (value.null) {
    row[column.null_byte] |= std::byte{column.null_mask};
    return;
  }
  std::byte* at = row + column.offset;
  const auto number = static_cast<std::int64_t>(value.number);
  switch (column.type.kind) {
    case ColumnType::i8: base::store_plain(at, static_cast<std::int8_t>(number)); return;
    case ColumnType::i16: base::store_plain(at, static_cast<std::int16_t>(number)); return;
    case ColumnType::i32:
    case ColumnType::date: base::store_plain(at, static_cast<std::int32_t>(number)); return;
    case ColumnType::i64:
    case ColumnType::decimal:
    case ColumnType::timestamp: base::store_plain(at, number); return;
    case ColumnType::f32: base::store_plain(at, static_cast<float>(value.real)); return;
    case ColumnType::f64: base::store_plain(at, value.real); return;
    case ColumnType::boolean: *at = std::byte{number != 0}; return;
    case ColumnType::fixed_char:
      ESPALIER_ASSERT(value.text.size() <= column.type.length);
      std::memset(at, ' ', column.type.length);
      std::memcpy(at, value.text.data(), value.text.size());
      return;
    case ColumnType::text:
      ESPALIER_ASSERT(value.text.size() <= column.type.length);
      base::store_plain(at, static_cast<std::uint16_t>(value.text.size()));
      std::memcpy(at + 2, value.text.data(), value.text.size());
      return;
    case ColumnType::invalid: break;
  }
  std::unreachable();
}

std::string to_text(const Value& value, const ValueType& type) {
  if (value.null) return "NULL";
  switch (type.kind) {
    case ValueKind::boolean: return value.number != 0 ? "true" : "false";
    case ValueKind::real: {
      std::array<char, 64> digits;
      const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value.real).ptr;
      return {digits.data(), end};
    }
    case ValueKind::date: {
      std::string text;
      append_date(text, static_cast<std::int64_t>(value.number));
      return text;
    }
    case ValueKind::timestamp: {
      std::string text;
      append_timestamp(text, static_cast<std::int64_t>(value.number));
      return text;
    }
    case ValueKind::text: return value.text;
    default: return to_text(value.number, type.scale);
  }
}

}  // namespace espalier::table

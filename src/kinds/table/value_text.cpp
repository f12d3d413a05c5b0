// SPDX-License-Identifier: Apache-2.0
// Numbers, bools and texts; dates and timestamps are in date_text.cpp.
#include "kinds/table/value_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <system_error>

#include "kinds/table/date_text.hpp"
#include "kinds/table/lower.hpp"
#include "kinds/table/row_values.hpp"

namespace espalier::table {
namespace {

using Wrong = std::optional<std::string>;

std::string_view without_blanks_around(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// A text in an error message: cut, and without what would disturb the line.
std::string shown(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, 40)) {
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  }
  return out + (text.size() > 40 ? "...\"" : "\"");
}

std::string no_value(std::string_view text, const Type& type) {
  return shown(text) + " is no " + to_text(type);
}

Wrong parse_integer(const Column& column, std::string_view text, std::byte* row) {
  std::string_view digits = text;
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  std::int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return no_value(text, column.type);
  if (error == std::errc{} && store_integer(column, row, value)) return std::nullopt;
  const IntegerRange range = range_of(column.type);
  return shown(text) + " is not from " + std::to_string(range.low) + " to " +
         std::to_string(range.high);
}

Wrong parse_decimal(const Column& column, std::string_view text, std::byte* row) {
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  const std::size_t point = rest.find('.');
  std::string_view whole = rest.substr(0, point);
  const std::string_view fraction =
      point == std::string_view::npos ? std::string_view() : rest.substr(point + 1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if ((whole.empty() && fraction.empty()) || !std::ranges::all_of(whole, is_digit) ||
      !std::ranges::all_of(fraction, is_digit)) {
    return no_value(text, column.type);
  }
  whole.remove_prefix(std::min(whole.find_first_not_of('0'), whole.size()));
  const unsigned scale = column.type.scale;
  if (fraction.size() > scale) {
    return shown(text) + " has more than " + std::to_string(scale) +
           " digits behind the point, for " + to_text(column.type);
  }
  if (whole.size() > column.type.precision - scale) {
    return shown(text) + " has more than " + std::to_string(column.type.precision - scale) +
           " digits before the point, for " + to_text(column.type);
  }
  std::int64_t value = 0;
  for (const char c : whole) value = value * 10 + (c - '0');
  for (const char c : fraction) value = value * 10 + (c - '0');
  value *= power_of_ten(scale - static_cast<unsigned>(fraction.size()));
  if (store_integer(column, row, negative ? -value : value)) return std::nullopt;
  return no_value(text, column.type);
}

template <class T>
Wrong parse_floating(const Column& column, std::string_view text, std::byte* row) {
  std::string_view digits = text;
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  T value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument || digits.ends_with(')')) {
    return no_value(text, column.type);
  }
  if (error == std::errc{} && store_floating(column, row, double{value})) return std::nullopt;
  return shown(text) + " is outside of what a " + to_text(column.type) + " can hold";
}

Wrong parse_boolean(const Column& column, std::string_view text, std::byte* row) {
  static constexpr std::array kTrue = {"true", "t", "yes", "y", "on", "1"};
  static constexpr std::array kFalse = {"false", "f", "no", "n", "off", "0"};
  const auto same = [text](std::string_view word) {
    return std::ranges::equal(text, word, {}, lower);
  };
  const bool is_true = std::ranges::any_of(kTrue, same);
  if (!is_true && !std::ranges::any_of(kFalse, same)) return no_value(text, column.type);
  (void)store_integer(column, row, is_true ? 1 : 0);
  return std::nullopt;
}

Wrong parse_text(const Column& column, std::string_view text, std::byte* row) {
  if (store_text(column, row, text)) return std::nullopt;
  return std::to_string(text.size()) + " bytes are more than " + to_text(column.type) + " holds";
}

template <class T>
void append_number(std::string& out, T value) {
  char text[64];
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

void append_decimal(std::string& out, std::int64_t value, unsigned scale) {
  if (value < 0) out += '-';
  auto magnitude = static_cast<std::uint64_t>(value);
  if (value < 0) magnitude = 0 - magnitude;
  std::string digits = std::to_string(magnitude);
  if (digits.size() <= scale) digits.insert(0, scale + 1 - digits.size(), '0');
  out.append(digits, 0, digits.size() - scale);
  if (scale == 0) return;
  out += '.';
  out.append(digits, digits.size() - scale);
}

template <class T>
void append_floating(std::string& out, T value) {
  if (std::isnan(value)) {
    out += "nan";
  } else {
    append_number(out, value);
  }
}

}  // namespace

std::optional<std::string> parse_value(const Column& column, std::string_view text,
                                       std::byte* row) {
  const std::string_view bare = without_blanks_around(text);
  switch (column.type.kind) {
    case ColumnType::i8:
    case ColumnType::i16:
    case ColumnType::i32:
    case ColumnType::i64: return parse_integer(column, bare, row);
    case ColumnType::decimal: return parse_decimal(column, bare, row);
    case ColumnType::f32: return parse_floating<float>(column, bare, row);
    case ColumnType::f64: return parse_floating<double>(column, bare, row);
    case ColumnType::boolean: return parse_boolean(column, bare, row);
    case ColumnType::date:
      if (const auto days = parse_date(bare); days && store_integer(column, row, *days)) {
        return std::nullopt;
      }
      return shown(bare) + " is no date; write YYYY-MM-DD, of the years 0001 to 9999";
    case ColumnType::timestamp:
      if (const auto time = parse_timestamp(bare); time && store_integer(column, row, *time)) {
        return std::nullopt;
      }
      return shown(bare) +
             " is no timestamp; write YYYY-MM-DD HH:MM:SS, with at most six digits of a fraction "
             "and an offset from UTC if there is one";
    case ColumnType::fixed_char:
    case ColumnType::text: return parse_text(column, text, row);
    case ColumnType::invalid: break;
  }
  return "a column without a type";
}

void append_value(std::string& out, const Column& column, const std::byte* row) {
  switch (column.type.kind) {
    case ColumnType::i8:
    case ColumnType::i16:
    case ColumnType::i32:
    case ColumnType::i64: return append_number(out, load_integer(column, row));
    case ColumnType::decimal:
      return append_decimal(out, load_integer(column, row), column.type.scale);
    case ColumnType::f32:
      return append_floating(out, static_cast<float>(load_floating(column, row)));
    case ColumnType::f64: return append_floating(out, load_floating(column, row));
    case ColumnType::boolean: out += load_integer(column, row) != 0 ? "true" : "false"; return;
    case ColumnType::date: return append_date(out, load_integer(column, row));
    case ColumnType::timestamp: return append_timestamp(out, load_integer(column, row));
    case ColumnType::fixed_char:
    case ColumnType::text: out += load_text(column, row); return;
    case ColumnType::invalid: return;
  }
}

}  // namespace espalier::table

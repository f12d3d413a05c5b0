// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/row_writer.hpp"

#include "kinds/table/ctr_cipher.hpp"
#include "kinds/table/row_values.hpp"
#include "kinds/table/value.hpp"

namespace espalier::client {
namespace {

constexpr std::size_t kTextShown = 40;

using Complaint = std::optional<std::string>;

// The value as it was given, not too long.
std::string shown(const Value& value) {
  const auto* const text = value.get_if<std::string_view>();
  if (text == nullptr) return value.to_text();
  if (text->size() <= kTextShown) return "'" + std::string(*text) + "'";
  return "'" + std::string(text->substr(0, kTextShown)) + "...'";
}

Complaint outside(const table::Column& column, const Value& value) {
  if (column.type.kind == wire::ColumnType::decimal) {
    return shown(value) + " has more than " + std::to_string(column.type.precision) +
           " digits at a scale of " + std::to_string(column.type.scale);
  }
  if (column.type.kind == wire::ColumnType::date ||
      column.type.kind == wire::ColumnType::timestamp) {
    return shown(value) + " is outside the years 1 to 9999";
  }
  const table::IntegerRange range = table::range_of(column.type);
  return shown(value) + " is outside " + std::to_string(range.low) + " to " +
         std::to_string(range.high);
}

Complaint store_number(const table::Column& column, const Value& value, std::int64_t number,
                       std::byte* row) {
  if (store_integer(column, row, number)) return std::nullopt;
  return outside(column, value);
}

Complaint store_decimal(const table::Column& column, const Value& value, Decimal number,
                        std::byte* row) {
  for (; number.scale < column.type.scale; ++number.scale) {
    if (__builtin_mul_overflow(number.unscaled, Int128{10}, &number.unscaled)) {
      return outside(column, value);
    }
  }
  if (number.scale > column.type.scale) {
    return shown(value) + " has more than " + std::to_string(column.type.scale) +
           " digits behind the point";
  }
  const auto low = static_cast<std::int64_t>(number.unscaled);
  if (low != number.unscaled) return outside(column, value);
  return store_number(column, value, low, row);
}

Complaint store_real(const table::Column& column, const Value& value, double real, std::byte* row) {
  if (table::store_floating(column, row, real)) return std::nullopt;
  return shown(value) + " is too large for a float";
}

// Of integers only those that a double, or float, holds exactly.
Complaint store_whole_real(const table::Column& column, const Value& value, std::int64_t number,
                           std::byte* row) {
  const bool narrow = column.type.kind == wire::ColumnType::f32;
  const std::int64_t limit = std::int64_t{1} << (narrow ? 24 : 53);
  if (number < -limit || number > limit) {
    return shown(value) + " is no number that a " + (narrow ? "float" : "double") +
           " is sure to hold; give it as a double";
  }
  return store_real(column, value, static_cast<double>(number), row);
}

Complaint store_text_value(const table::Column& column, const Value& value, std::byte* row) {
  if (store_text(column, row, *value.get_if<std::string_view>())) return std::nullopt;
  return shown(value) + " has " + std::to_string(value.get_if<std::string_view>()->size()) +
         " bytes, more than " + std::to_string(column.type.length);
}

Complaint other_type(const table::Column& column, const Value& value) {
  return shown(value) + " is no " + table::to_text(column.type);
}

}  // namespace

Complaint store_value(const table::Column& column, const Value& value, std::byte* row) {
  if (value.is_null()) {
    if (store_null(column, row)) return std::nullopt;
    return "null, and the column is not null";
  }
  switch (column.type.kind) {
    case wire::ColumnType::i8:
    case wire::ColumnType::i16:
    case wire::ColumnType::i32:
    case wire::ColumnType::i64:
      if (const auto* number = value.get_if<std::int64_t>()) {
        return store_number(column, value, *number, row);
      }
      break;
    case wire::ColumnType::decimal:
      if (const auto* number = value.get_if<std::int64_t>()) {
        return store_decimal(column, value, {*number, 0}, row);
      }
      if (const auto* number = value.get_if<Decimal>()) {
        return store_decimal(column, value, *number, row);
      }
      break;
    case wire::ColumnType::f32:
    case wire::ColumnType::f64:
      if (const auto* number = value.get_if<std::int64_t>()) {
        return store_whole_real(column, value, *number, row);
      }
      if (const auto* real = value.get_if<double>()) return store_real(column, value, *real, row);
      break;
    case wire::ColumnType::date:
      if (const auto* date = value.get_if<Date>()) {
        return store_number(column, value, date->time_since_epoch().count(), row);
      }
      break;
    case wire::ColumnType::timestamp:
      if (const auto* at = value.get_if<Timestamp>()) {
        return store_number(column, value, at->time_since_epoch().count(), row);
      }
      break;
    case wire::ColumnType::boolean:
      if (const auto* is = value.get_if<bool>()) return store_number(column, value, *is, row);
      break;
    case wire::ColumnType::fixed_char:
    case wire::ColumnType::text:
      if (value.kind() == ValueKind::text) return store_text_value(column, value, row);
      break;
    case wire::ColumnType::invalid: break;
  }
  return other_type(column, value);
}

std::unexpected<TableError> RowWriterImpl::refuse_row(std::string words) {
  TableError error{{Code::invalid_argument, 0, static_cast<std::uint32_t>(added_)},
                   "row " + std::to_string(added_) + ": " + std::move(words)};
  ++added_;
  if (!refused_) refused_ = error;
  return std::unexpected(std::move(error));
}

TableResult<void> RowWriterImpl::add(std::span<const Value> values) {
  const table::Schema& schema = table_->schema();
  if (values.size() != schema.columns().size()) {
    return refuse_row(std::to_string(values.size()) + " values for " +
                      std::to_string(schema.columns().size()) + " columns");
  }
  if (size() == rows_max()) {
    return refuse_row("one append has at most " + std::to_string(rows_max()) + " rows");
  }
  const std::size_t begin = rows_.size();
  rows_.resize(begin + schema.row_bytes());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const table::Column& column = schema.column(i);
    if (auto wrong = store_value(column, values[i], rows_.data() + begin)) {
      rows_.resize(begin);
      return refuse_row("column " + column.name + ": " + *wrong);
    }
  }
  ++added_;
  return {};
}

TableResult<std::uint64_t> RowWriterImpl::commit() {
  if (refused_) return std::unexpected(*refused_);
  auto first = table_->salt() ? append_encrypted() : table_->append(rows_);
  if (first) clear();
  return first;
}

// What is encrypted is a copy: the rows stay where the append fails.
TableResult<std::uint64_t> RowWriterImpl::append_encrypted() {
  if (rows_.empty()) {
    const auto facts = table_->facts();
    if (!facts) return std::unexpected(facts.error());
    return facts->rows;
  }
  auto cipher = table_->cipher();
  if (!cipher) return std::unexpected(std::move(cipher.error()));
  std::vector<std::byte> copy = rows_;
  return table_->append_encrypted(copy, **cipher);
}

void RowWriterImpl::clear() {
  rows_.clear();
  added_ = 0;
  refused_.reset();
}

}  // namespace espalier::client

// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/rows.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "kinds/table/result.hpp"
#include "kinds/table/row_values.hpp"

namespace espalier::client {
namespace {

Value stored_value(const table::Column& column, const std::byte* row) {
  if (table::is_null(column, row)) return {};
  switch (column.type.kind) {
    case wire::ColumnType::decimal:
      return Decimal{table::load_integer(column, row), column.type.scale};
    case wire::ColumnType::date: return Date(std::chrono::days(table::load_integer(column, row)));
    case wire::ColumnType::timestamp:
      return Timestamp(std::chrono::microseconds(table::load_integer(column, row)));
    case wire::ColumnType::boolean: return table::load_integer(column, row) != 0;
    case wire::ColumnType::f32:
    case wire::ColumnType::f64: return table::load_floating(column, row);
    case wire::ColumnType::fixed_char:
    case wire::ColumnType::text: return table::load_text(column, row);
    default: return table::load_integer(column, row);
  }
}

}  // namespace

Value RowsImpl::value(std::size_t row, std::size_t column) const {
  const table::Pipeline& pipeline = query_->pipeline;
  ESPALIER_ASSERT(row < size() && column < pipeline.items.size());
  const std::byte* const at = rows_.data() + row * row_bytes();
  const table::Item& item = pipeline.items[column];
  const bool computed =
      item.aggregate == wire::Aggregate::sum || item.aggregate == wire::Aggregate::avg;
  if (!computed) return stored_value(pipeline.result.column(item.first_column), at);
  const table::Value value = answer_value(pipeline, item, at);
  if (value.null) return {};
  const table::ValueType type = answer_type(item);
  if (type.kind == wire::ValueKind::real) return value.real;
  return Decimal{value.number, type.scale};
}

}  // namespace espalier::client

namespace espalier {

Value Row::value(std::size_t column) const { return rows_->value(row_, column); }

void Row::misused(std::size_t column) const {
  const bool there = column < rows_->columns().size();
  ESPALIER_ASSERT(there && "Row::get: there is no such column");
  ESPALIER_ASSERT(!there && "Row::get: the value is null, or of another type");
  std::unreachable();
}

std::size_t Rows::size() const { return impl_->size(); }

const std::vector<AnswerColumn>& Rows::columns() const { return impl_->columns(); }

std::optional<std::size_t> Rows::find(std::string_view name) const {
  const auto found = std::ranges::find(columns(), name, &AnswerColumn::name);
  if (found == columns().end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns().begin());
}

Row Rows::row(std::size_t i) const {
  ESPALIER_ASSERT(i < size());
  return {impl_.get(), i};
}

}  // namespace espalier

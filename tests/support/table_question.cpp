// SPDX-License-Identifier: Apache-2.0
#include "tests/support/table_question.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "kinds/table/row_values.hpp"

namespace espalier::test {
namespace {

using table::PipelineMessage;
using wire::ExpressionKind;

Value value_of(const table::Column& column, const std::byte* row) {
  if (table::is_null(column, row)) return {};
  if (table::is_textual(column.type.kind)) return table::load_text(column, row);
  if (table::is_floating(column.type.kind)) return table::load_floating(column, row);
  const std::int64_t number = table::load_integer(column, row);
  switch (column.type.kind) {
    case wire::ColumnType::boolean: return number != 0;
    case wire::ColumnType::decimal: return Decimal{number, column.type.scale};
    case wire::ColumnType::date: return Date(std::chrono::days(number));
    case wire::ColumnType::timestamp: return Timestamp(std::chrono::microseconds(number));
    default: return number;
  }
}

Value value_of(const PipelineMessage& message, const wire::ConstantValue& constant) {
  if (constant.null != 0) return {};
  const auto number = static_cast<std::int64_t>(constant.value);
  switch (static_cast<wire::ValueKind>(constant.kind)) {
    case wire::ValueKind::boolean: return number != 0;
    case wire::ValueKind::decimal: return Decimal{number, constant.scale};
    case wire::ValueKind::real: return std::bit_cast<double>(constant.value);
    case wire::ValueKind::date: return Date(std::chrono::days(number));
    case wire::ValueKind::timestamp: return Timestamp(std::chrono::microseconds(number));
    case wire::ValueKind::text:
      return std::string_view(message.heap).substr(constant.value, constant.bytes);
    default: return number;
  }
}

Expr null_of(wire::ValueKind kind) {
  switch (kind) {
    case wire::ValueKind::boolean: return espalier::null_of(ColumnType::boolean());
    case wire::ValueKind::decimal: return espalier::null_of(ColumnType::decimal(18, 0));
    case wire::ValueKind::real: return espalier::null_of(ColumnType::f64());
    case wire::ValueKind::date: return espalier::null_of(ColumnType::date());
    case wire::ValueKind::timestamp: return espalier::null_of(ColumnType::timestamp());
    case wire::ValueKind::text: return espalier::null_of(ColumnType::text(1));
    default: return espalier::null_of(ColumnType::i64());
  }
}

/// A value as the constant that it is.
Expr constant_of(const Value& value) {
  if (const auto* is = value.get_if<bool>()) return *is;
  if (const auto* number = value.get_if<std::int64_t>()) return *number;
  if (const auto* decimal = value.get_if<Decimal>()) return *decimal;
  if (const auto* real = value.get_if<double>()) return *real;
  if (const auto* date = value.get_if<Date>()) return *date;
  if (const auto* timestamp = value.get_if<Timestamp>()) return *timestamp;
  return *value.get_if<std::string_view>();
}

class Translation {
 public:
  Translation(const PipelineMessage& message, const table::Schema& schema)
      : message_(message), schema_(schema) {}

  Expr expr(std::uint16_t index);
  /// As where() takes it whole: it takes an `and` apart, and then spares its right side.
  Expr condition(std::uint16_t index) {
    const bool splits =
        message_.nodes[index].kind == static_cast<std::uint8_t>(ExpressionKind::logical_and);
    return splits ? !!expr(index) : expr(index);
  }
  bool untold = false;  // something that the public API has no words for

 private:
  Expr constant(const wire::ConstantValue& of) {
    if (of.null != 0) return test::null_of(static_cast<wire::ValueKind>(of.kind));
    return constant_of(value_of(message_, of));
  }
  Expr in(const wire::ExpressionNode& node);

  const PipelineMessage& message_;
  const table::Schema& schema_;
};

Expr Translation::in(const wire::ExpressionNode& node) {
  std::vector<Value> values;
  for (std::uint16_t i = 0; i < node.c; ++i) {
    values.push_back(value_of(message_, message_.constants[node.b + i]));
  }
  // A null takes its kind from the others.
  untold = untold || std::ranges::all_of(values, &Value::is_null);
  return expr(node.a).in(values);
}

Expr Translation::expr(std::uint16_t index) {
  const wire::ExpressionNode& node = message_.nodes[index];
  switch (static_cast<ExpressionKind>(node.kind)) {
    case ExpressionKind::column: return col(schema_.column(node.a).name);
    case ExpressionKind::constant: return constant(message_.constants[node.a]);
    case ExpressionKind::add: return expr(node.a) + expr(node.b);
    case ExpressionKind::subtract: return expr(node.a) - expr(node.b);
    case ExpressionKind::multiply: return expr(node.a) * expr(node.b);
    case ExpressionKind::equal: return expr(node.a) == expr(node.b);
    case ExpressionKind::not_equal: return expr(node.a) != expr(node.b);
    case ExpressionKind::less: return expr(node.a) < expr(node.b);
    case ExpressionKind::less_equal: return expr(node.a) <= expr(node.b);
    case ExpressionKind::greater: return expr(node.a) > expr(node.b);
    case ExpressionKind::greater_equal: return expr(node.a) >= expr(node.b);
    case ExpressionKind::logical_and: return expr(node.a) && expr(node.b);
    case ExpressionKind::logical_or: return expr(node.a) || expr(node.b);
    case ExpressionKind::logical_not: return !expr(node.a);
    case ExpressionKind::is_null: return expr(node.a).is_null();
    case ExpressionKind::between: return expr(node.a).between(expr(node.b), expr(node.c));
    case ExpressionKind::in: return in(node);
    case ExpressionKind::like: {
      const Value pattern = value_of(message_, message_.constants[node.b]);
      untold = untold || pattern.kind() != ValueKind::text;
      return expr(node.a).like(untold ? "" : *pattern.get_if<std::string_view>());
    }
    case ExpressionKind::matches: {
      const Value pattern = value_of(message_, message_.constants[node.b]);
      untold = untold || pattern.kind() != ValueKind::text;
      return expr(node.a).matches(
          untold ? "" : *pattern.get_if<std::string_view>(),
          node.c == wire::kMatchIgnoresCase ? LetterCase::ignored : LetterCase::exact);
    }
    default: break;
  }
  untold = true;
  return col("");
}

}  // namespace

std::uint64_t append(const Table& table, const table::MemoryRows& rows, base::Random& random) {
  const std::size_t together = 1 + random.below(rows.size() + 1);
  RowWriter writer = table.writer();
  std::vector<Value> values;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    values.clear();
    for (const table::Column& column : rows.schema().columns()) {
      values.push_back(value_of(column, rows.row(i)));
    }
    const auto added = writer.add_row(values);
    EXPECT_TRUE(added) << message(added.error());
    if (writer.size() < together && i + 1 != rows.size()) continue;
    const std::size_t first = i + 1 - writer.size();
    const auto appended = writer.commit();
    EXPECT_TRUE(appended) << message(appended.error());
    EXPECT_EQ(appended.value_or(0), first);
  }
  return table.rows().value_or(0);
}

std::optional<Query> query_of(Query query, const PipelineMessage& message,
                              const table::Schema& schema) {
  Translation translation(message, schema);
  for (const wire::OperatorHeader& op : message.operators) {
    std::vector<Output> outputs;
    std::vector<Aggregate> aggregates;
    for (std::size_t i = op.first_item; i < std::size_t{op.first_item} + op.items; ++i) {
      const wire::PipelineItem& item = message.items[i];
      std::optional<Expr> of;
      if (item.node != wire::kNoExpression) of = translation.expr(item.node);
      if (item.aggregate == 0) {
        outputs.emplace_back(*of);
      } else {
        aggregates.emplace_back(static_cast<Aggregate::Function>(item.aggregate), of);
      }
    }
    switch (static_cast<wire::OperatorKind>(op.kind)) {
      case wire::OperatorKind::filter:
        query.where(translation.condition(static_cast<std::uint16_t>(op.argument)));
        break;
      case wire::OperatorKind::project: query.project(outputs); break;
      case wire::OperatorKind::group_by: query.group_by(outputs, aggregates); break;
      case wire::OperatorKind::distinct: query.distinct(); break;
      case wire::OperatorKind::limit: query.limit(op.argument); break;
      default: break;
    }
  }
  if (translation.untold) return std::nullopt;
  return query;
}

}  // namespace espalier::test

// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/expression.hpp"

#include <utility>

#include "base/assert.hpp"
#include "kinds/table/client/schema.hpp"
#include "kinds/table/pipeline_builder.hpp"

namespace espalier::client {

using wire::ExpressionKind;

Expr ExprNode::operation(ExpressionKind kind, std::initializer_list<Expr> operands) {
  ExprNode node;
  node.kind = kind;
  for (const Expr& operand : operands) {
    node.nodes += of(operand).nodes;
    if (node.problem.empty()) node.problem = of(operand).problem;
  }
  if (node.nodes > kNodesMax) node.problem = "the expression is too large";
  // What cannot stand needs no children, whose end would be recursive.
  if (!node.problem.empty()) {
    node.nodes = 1;
    return handle(std::move(node));
  }
  for (const Expr& operand : operands) node.children.push_back(shared(operand));
  return handle(std::move(node));
}

table::Constant constant_of(const Value& value, std::string& problem) {
  switch (value.kind()) {
    case ValueKind::boolean: return table::boolean_constant(*value.get_if<bool>());
    case ValueKind::integer: return table::integer_constant(*value.get_if<std::int64_t>());
    case ValueKind::real: return table::real_constant(*value.get_if<double>());
    case ValueKind::date:
      return table::date_constant(
          static_cast<std::int32_t>(value.get_if<Date>()->time_since_epoch().count()));
    case ValueKind::timestamp:
      return table::timestamp_constant(value.get_if<Timestamp>()->time_since_epoch().count());
    case ValueKind::decimal: {
      const Decimal number = *value.get_if<Decimal>();
      const std::int64_t limit = table::power_of_ten(wire::kDecimalDigitsMax);
      if (number.scale <= wire::kDecimalDigitsMax && number.unscaled > -limit &&
          number.unscaled < limit) {
        return table::decimal_constant(static_cast<std::int64_t>(number.unscaled), number.scale);
      }
      problem = "the decimal " + number.to_text() + " has more than 18 digits";
      break;
    }
    case ValueKind::text: {
      const std::string_view text = *value.get_if<std::string_view>();
      if (text.size() <= wire::kConstantTextBytesMax) return table::text_constant(text);
      problem = "a text has more than 1024 bytes";
      break;
    }
    case ValueKind::null: problem = "a null needs a type: null_of()"; break;
  }
  return table::boolean_constant(false);
}

}  // namespace espalier::client

namespace espalier {

using client::ExprNode;
using wire::ExpressionKind;

Expr Expr::constant_of(const Value& value) {
  ExprNode node;
  node.kind = ExpressionKind::constant;
  node.constants.push_back(client::constant_of(value, node.problem));
  return ExprNode::handle(std::move(node));
}

Expr Expr::combined(Operator op, const Expr& a, const Expr& b) {
  static_assert(static_cast<int>(Operator::add) == static_cast<int>(ExpressionKind::add));
  static_assert(static_cast<int>(Operator::greater_equal) ==
                static_cast<int>(ExpressionKind::greater_equal));
  static_assert(static_cast<int>(Operator::logical_or) ==
                static_cast<int>(ExpressionKind::logical_or));
  return ExprNode::operation(static_cast<ExpressionKind>(op), {a, b});
}

Expr Expr::negated(const Expr& a) {
  return ExprNode::operation(ExpressionKind::subtract, {Expr(0), a});
}

Expr Expr::not_of(const Expr& a) { return ExprNode::operation(ExpressionKind::logical_not, {a}); }

Expr Expr::is_null() const { return ExprNode::operation(ExpressionKind::is_null, {*this}); }

Expr Expr::is_not_null() const { return !is_null(); }

Expr Expr::between(const Expr& low, const Expr& high) const {
  return ExprNode::operation(ExpressionKind::between, {*this, low, high});
}

Expr Expr::like(std::string_view pattern) const {
  ExprNode node = ExprNode::of(ExprNode::operation(ExpressionKind::like, {*this}));
  node.constants.push_back(client::constant_of(pattern, node.problem));
  return ExprNode::handle(std::move(node));
}

Expr Expr::matches(std::string_view pattern, LetterCase letters) const {
  ExprNode node = ExprNode::of(ExprNode::operation(ExpressionKind::matches, {*this}));
  node.constants.push_back(client::constant_of(pattern, node.problem));
  node.ignores_case = letters == LetterCase::ignored;
  return ExprNode::handle(std::move(node));
}

Expr Expr::in(std::span<const Value> values) const {
  ESPALIER_ASSERT(!values.empty());
  ExprNode node = ExprNode::of(ExprNode::operation(ExpressionKind::in, {*this}));
  if (values.size() > wire::kPipelineConstantsMax) {
    node.problem = "there are more than 2048 constants";
    values = {};
  }
  // A null takes the kind of the first that is none.
  table::Constant null;
  for (const Value& value : values) {
    if (!value.is_null()) {
      null = table::null_constant(client::constant_of(value, node.problem).type.kind);
      break;
    }
  }
  const bool has_kind = null.type.kind != wire::ValueKind::invalid;
  for (const Value& value : values) {
    const bool is_typed_null = value.is_null() && has_kind;
    node.constants.push_back(is_typed_null ? null : client::constant_of(value, node.problem));
  }
  return ExprNode::handle(std::move(node));
}

Expr col(std::string_view name) {
  ExprNode node;
  node.kind = ExpressionKind::column;
  node.column = name;
  return ExprNode::handle(std::move(node));
}

Expr parameter(std::string_view name, const Value& value) {
  ExprNode node;
  node.kind = ExpressionKind::constant;
  node.parameter = name;
  node.constants.push_back(client::constant_of(value, node.problem));
  if (name.empty()) node.problem = "a parameter has no name";
  return ExprNode::handle(std::move(node));
}

Expr null_of(const ColumnType& type) {
  ExprNode node;
  node.kind = ExpressionKind::constant;
  const table::Type stored = client::type_of(type);
  if (table::is_valid(stored)) {
    table::Column column{};
    column.type = stored;
    node.constants.push_back(table::null_constant(table::value_type(column).kind));
  } else {
    node.problem = "a null has a type that there is not";
  }
  return ExprNode::handle(std::move(node));
}

}  // namespace espalier

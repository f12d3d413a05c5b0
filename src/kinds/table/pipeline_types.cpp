// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/pipeline_types.hpp"

#include <algorithm>
#include <bit>
#include <span>

#include "base/assert.hpp"
#include "kinds/table/like.hpp"

namespace espalier::table {
namespace {

using wire::ExpressionKind;
using wire::ValueKind;

std::unexpected<std::string> wrong_type(std::string reason) {
  return std::unexpected(std::move(reason));
}

bool comparable(const ValueType& a, const ValueType& b) {
  return a.kind == b.kind || (is_numeric(a.kind) && is_numeric(b.kind));
}

std::string not_comparable(const ValueType& a, const ValueType& b) {
  return std::string(name_of(a.kind)) + " is compared with " + std::string(name_of(b.kind));
}

bool compares(ExpressionKind kind) {
  return (kind >= ExpressionKind::equal && kind <= ExpressionKind::greater_equal) ||
         kind == ExpressionKind::between || kind == ExpressionKind::in;
}

bool ends_in_blank(const Constant& constant) { return constant.text.ends_with(' '); }

Constant without_blanks_at_end(Constant constant) {
  if (!ends_in_blank(constant)) return constant;
  constant.text.resize(constant.text.find_last_not_of(' ') + 1);  // npos + 1: none is left
  constant.type.stored = stored_text(constant.text.size());
  return constant;
}

std::string is_not(ExpressionKind kind, std::string_view wanted, const ValueType& found) {
  return "'" + std::string(name_of(kind)) + "' takes " + std::string(wanted) + ", not " +
         std::string(name_of(found.kind));
}

}  // namespace

bool is_numeric(ValueKind kind) {
  return kind == ValueKind::integer || kind == ValueKind::decimal || kind == ValueKind::real;
}

ValueType computed_type(ValueKind kind, std::uint8_t scale, bool nullable) {
  ValueType type{kind, scale, nullable, {}};
  switch (kind) {
    case ValueKind::boolean: type.stored.kind = ColumnType::boolean; break;
    case ValueKind::integer: type.stored.kind = ColumnType::i64; break;
    case ValueKind::decimal:
      type.stored = {ColumnType::decimal, wire::kDecimalDigitsMax, scale, 0};
      break;
    case ValueKind::real: type.stored.kind = ColumnType::f64; break;
    case ValueKind::date: type.stored.kind = ColumnType::date; break;
    case ValueKind::timestamp: type.stored.kind = ColumnType::timestamp; break;
    case ValueKind::text:
    case ValueKind::invalid: break;
  }
  return type;
}

Type stored_text(std::size_t bytes) {
  return {ColumnType::text, 0, 0,
          static_cast<std::uint16_t>(std::clamp<std::size_t>(bytes, 1, wire::kTextBytesMax))};
}

ValueType value_type(const Column& column) {
  ValueType type;
  type.stored = column.type;
  type.nullable = column.nullable;
  type.scale = column.type.scale;
  switch (column.type.kind) {
    case ColumnType::i8:
    case ColumnType::i16:
    case ColumnType::i32:
    case ColumnType::i64: type.kind = ValueKind::integer; break;
    case ColumnType::f32:
    case ColumnType::f64: type.kind = ValueKind::real; break;
    case ColumnType::decimal: type.kind = ValueKind::decimal; break;
    case ColumnType::date: type.kind = ValueKind::date; break;
    case ColumnType::timestamp: type.kind = ValueKind::timestamp; break;
    case ColumnType::boolean: type.kind = ValueKind::boolean; break;
    case ColumnType::fixed_char:
    case ColumnType::text: type.kind = ValueKind::text; break;
    case ColumnType::invalid: break;
  }
  ESPALIER_ASSERT(type.kind != ValueKind::invalid);
  return type;
}

std::vector<Constant> read_constants(const PipelineMessage& message) {
  std::vector<Constant> constants;
  constants.reserve(message.constants.size());
  for (const wire::ConstantValue& from : message.constants) {
    Constant constant;
    const auto kind = static_cast<ValueKind>(from.kind);
    constant.type = computed_type(kind, from.scale, from.null != 0);
    constant.null = from.null != 0;
    if (kind == ValueKind::text) {
      constant.text.assign(message.heap, from.value, from.bytes);
      constant.type.stored = stored_text(from.bytes);
    } else if (kind == ValueKind::real) {
      constant.real = std::bit_cast<double>(from.value);
    } else {
      constant.number = static_cast<std::int64_t>(from.value);
    }
    constants.push_back(std::move(constant));
  }
  return constants;
}

void compare_chars_without_blanks(std::vector<Node>& nodes, std::vector<Constant>& constants) {
  if (std::ranges::none_of(constants, ends_in_blank)) return;
  // All of them behind those of the message, in the same order: in() asks for constants in a row,
  // and whatever a message says, there are at most twice as many.
  const auto count = static_cast<std::uint16_t>(constants.size());
  constants.reserve(std::size_t{count} * 2);
  for (std::size_t i = 0; i < count; ++i) constants.push_back(without_blanks_at_end(constants[i]));
  const auto is_char = [&](std::uint16_t node) {
    return nodes[node].type.stored.kind == ColumnType::fixed_char;
  };
  for (Node& node : nodes) {
    if (!compares(node.kind)) continue;
    const std::uint16_t all[] = {node.a, node.b, node.c};
    const std::span operands = std::span(all).first(children_of(node.kind));
    if (std::ranges::none_of(operands, is_char)) continue;
    const auto without = [count](std::uint16_t constant) {
      return static_cast<std::uint16_t>(constant + count);
    };
    if (node.kind == ExpressionKind::in) node.b = without(node.b);
    for (const std::uint16_t operand : operands) {
      Node& at = nodes[operand];
      if (at.kind == ExpressionKind::constant) at.a = without(at.a);
    }
  }
}

std::expected<ValueType, std::string> TypeCheck::leaf(const wire::ExpressionNode& node) const {
  if (static_cast<ExpressionKind>(node.kind) == ExpressionKind::constant)
    return constants_[node.a].type;
  if (node.a >= schema_.columns().size()) {
    return wrong_type("the table has no column " + std::to_string(node.a));
  }
  return value_type(schema_.column(node.a));
}

std::expected<ValueType, std::string> TypeCheck::arithmetic(ExpressionKind kind, const ValueType& a,
                                                            const ValueType& b) const {
  for (const ValueType* operand : {&a, &b}) {
    if (!is_numeric(operand->kind)) return wrong_type(is_not(kind, "numbers", *operand));
  }
  const bool nullable = a.nullable || b.nullable;
  if (a.kind == ValueKind::real || b.kind == ValueKind::real) {
    return computed_type(ValueKind::real, 0, nullable);
  }
  if (a.kind == ValueKind::integer && b.kind == ValueKind::integer) {
    return computed_type(ValueKind::integer, 0, nullable);
  }
  const unsigned sum = unsigned{a.scale} + b.scale;
  const unsigned scale = kind == ExpressionKind::multiply ? sum : std::max(a.scale, b.scale);
  if (scale > wire::kDecimalDigitsMax) {
    return wrong_type("the product would have " + std::to_string(scale) +
                      " digits behind the point; it may have 18");
  }
  return computed_type(ValueKind::decimal, static_cast<std::uint8_t>(scale), nullable);
}

std::expected<ValueType, std::string> TypeCheck::condition(const wire::ExpressionNode& node,
                                                           const std::vector<Node>& before) const {
  const auto kind = static_cast<ExpressionKind>(node.kind);
  const ValueType& a = before[node.a].type;
  bool nullable = a.nullable;
  const auto take = [&](const ValueType& other) {
    nullable = nullable || other.nullable;
    return comparable(a, other);
  };
  switch (kind) {
    case ExpressionKind::is_null: nullable = false; break;
    case ExpressionKind::logical_not:
      if (a.kind != ValueKind::boolean) return wrong_type(is_not(kind, "conditions", a));
      break;
    case ExpressionKind::logical_and:
    case ExpressionKind::logical_or: {
      const ValueType& b = before[node.b].type;
      for (const ValueType* operand : {&a, &b}) {
        if (operand->kind != ValueKind::boolean)
          return wrong_type(is_not(kind, "conditions", *operand));
      }
      nullable = nullable || b.nullable;
      break;
    }
    case ExpressionKind::like:
      if (a.kind != ValueKind::text) return wrong_type(is_not(kind, "text", a));
      if (!take(constants_[node.b].type)) {
        return wrong_type(is_not(kind, "text as its pattern", constants_[node.b].type));
      }
      if (const char* reason = wrong_with_pattern(constants_[node.b].text))
        return wrong_type(reason);
      break;
    case ExpressionKind::matches: {
      const ValueType& pattern = constants_[node.b].type;
      if (a.kind != ValueKind::text) return wrong_type(is_not(kind, "text", a));
      if (!take(pattern)) return wrong_type(is_not(kind, "text as its pattern", pattern));
      break;
    }
    case ExpressionKind::in:
      for (std::size_t i = node.b; i < std::size_t{node.b} + node.c; ++i) {
        if (!take(constants_[i].type)) return wrong_type(not_comparable(a, constants_[i].type));
      }
      break;
    case ExpressionKind::between:
      if (!take(before[node.c].type)) return wrong_type(not_comparable(a, before[node.c].type));
      [[fallthrough]];
    default:
      if (!take(before[node.b].type)) return wrong_type(not_comparable(a, before[node.b].type));
      break;
  }
  return computed_type(ValueKind::boolean, 0, nullable);
}

std::expected<Node, std::string> TypeCheck::check(const wire::ExpressionNode& node,
                                                  const std::vector<Node>& before) const {
  const auto kind = static_cast<ExpressionKind>(node.kind);
  std::expected<ValueType, std::string> type;
  switch (kind) {
    case ExpressionKind::column:
    case ExpressionKind::constant: type = leaf(node); break;
    case ExpressionKind::add:
    case ExpressionKind::subtract:
    case ExpressionKind::multiply:
      type = arithmetic(kind, before[node.a].type, before[node.b].type);
      break;
    default: type = condition(node, before); break;
  }
  if (!type) return std::unexpected(std::move(type.error()));
  return Node{kind, node.a, node.b, node.c, *type};
}

}  // namespace espalier::table

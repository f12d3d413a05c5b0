// SPDX-License-Identifier: Apache-2.0
#include "sql/node_writer.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "kinds/table/pipeline_types.hpp"
#include "regex/compiled_regex.hpp"
#include "sql/literals.hpp"

namespace espalier::sql {
namespace {

using wire::ExpressionKind;
using wire::ValueKind;

/// What a literal is by itself; text and null adapt to what they stand beside.
ValueKind own_kind(const Expr& literal) {
  if (literal.kind == ExprKind::string || literal.kind == ExprKind::null) return ValueKind::invalid;
  const auto constant = constant_of(literal, ValueKind::invalid);
  return constant ? constant->type.kind : ValueKind::invalid;
}

}  // namespace

NodeWriter::NodeId NodeWriter::constant(const table::Constant& value) {
  constants_.push_back(value);
  return builder_.constant(value);
}

SqlResult<NodeWriter::Written> NodeWriter::typed(const Expr& expr, NodeId id) {
  const table::TypeCheck types(schema_, constants_);
  const std::span<const wire::ExpressionNode> built = builder_.nodes();
  while (nodes_.size() < built.size()) {
    auto node = types.check(built[nodes_.size()], nodes_);
    if (!node) return wrong(expr, std::move(node.error()));
    nodes_.push_back(*node);
  }
  return Written{id, nodes_[id].type};
}

SqlResult<NodeWriter::Written> NodeWriter::literal(const Expr& expr, ValueKind wanted) {
  const auto value = constant_of(expr, wanted);
  if (!value) return wrong(expr, value.error());
  return typed(expr, constant(*value));
}

SqlResult<std::vector<NodeWriter::NodeId>> NodeWriter::operands(std::span<const Expr> children) {
  std::vector<NodeId> ids(children.size());
  ValueKind wanted = ValueKind::invalid;
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (is_literal(children[i])) continue;
    const auto written = write(children[i], ValueKind::invalid);
    if (!written) return std::unexpected(written.error());
    ids[i] = written->id;
    // A real makes the others reals.
    if (wanted != ValueKind::real || !table::is_numeric(written->type.kind)) {
      wanted = written->type.kind;
    }
  }
  for (std::size_t i = 0; i < children.size() && wanted == ValueKind::invalid; ++i) {
    if (is_literal(children[i])) wanted = own_kind(children[i]);
  }
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (!is_literal(children[i])) continue;
    const auto written = literal(children[i], wanted);
    if (!written) return std::unexpected(written.error());
    ids[i] = written->id;
  }
  return ids;
}

SqlResult<NodeWriter::Written> NodeWriter::balanced(const Expr& expr,
                                                    std::span<const Expr> children) {
  if (children.size() == 1) return write(children.front(), ValueKind::boolean);
  const std::size_t half = children.size() / 2;
  const auto left = balanced(expr, children.first(half));
  if (!left) return left;
  const auto right = balanced(expr, children.subspan(half));
  if (!right) return right;
  return typed(expr, builder_.binary(expr.op, left->id, right->id));
}

SqlResult<NodeWriter::Written> NodeWriter::negate(const Expr& expr) {
  const auto value = write(expr.children.front(), ValueKind::invalid);
  if (!value) return value;
  const NodeId zero = constant(table::integer_constant(0));
  return typed(expr, builder_.binary(ExpressionKind::subtract, zero, value->id));
}

SqlResult<NodeWriter::Written> NodeWriter::like(const Expr& expr) {
  const auto value = write(expr.children[0], ValueKind::text);
  if (!value) return value;
  const auto pattern = constant_of(expr.children[1], ValueKind::text);
  if (!pattern) return wrong(expr.children[1], pattern.error());
  constants_.push_back(*pattern);
  return typed(expr, builder_.like(value->id, *pattern));
}

SqlResult<NodeWriter::Written> NodeWriter::matches(const Expr& expr) {
  const auto value = write(expr.children[0], ValueKind::text);
  if (!value) return value;
  const Expr& literal = expr.children[1];
  const auto pattern = constant_of(literal, ValueKind::text);
  if (!pattern) return wrong(literal, pattern.error());
  const bool ignore_case = expr.text == kIgnoreCase;
  // Here, where its position is known; nodes compile it once more.
  const auto compiled = regex::CompiledRegex::compile(pattern->text, {.ignore_case = ignore_case},
                                                      regex::Engines::re2_only);
  if (!compiled) return wrong(literal, compiled.error());
  constants_.push_back(*pattern);
  return typed(expr, builder_.matches(value->id, *pattern, ignore_case));
}

SqlResult<NodeWriter::Written> NodeWriter::in(const Expr& expr) {
  const std::span<const Expr> list = std::span(expr.children).subspan(1);
  if (!std::ranges::all_of(list, is_literal)) return in_one_by_one(expr);
  const auto value = write(expr.children.front(), ValueKind::invalid);
  if (!value) return value;
  std::vector<table::Constant> values;
  for (const Expr& item : list) {
    auto one = constant_of(item, value->type.kind);
    if (!one) return wrong(item, one.error());
    values.push_back(*std::move(one));
  }
  constants_.insert(constants_.end(), values.begin(), values.end());
  return typed(expr, builder_.in(value->id, values));
}

SqlResult<NodeWriter::Written> NodeWriter::in_one_by_one(const Expr& expr) {
  Expr any;
  any.kind = ExprKind::operation;
  any.op = ExpressionKind::logical_or;
  any.position = expr.position;
  for (std::size_t i = 1; i < expr.children.size(); ++i) {
    Expr equal = any;
    equal.op = ExpressionKind::equal;
    equal.children = {expr.children.front(), expr.children[i]};
    any.children.push_back(std::move(equal));
  }
  return balanced(any, any.children);
}

SqlResult<NodeWriter::Written> NodeWriter::operation(const Expr& expr) {
  switch (expr.op) {
    case ExpressionKind::logical_and:
    case ExpressionKind::logical_or: return balanced(expr, expr.children);
    case ExpressionKind::like: return like(expr);
    case ExpressionKind::matches: return matches(expr);
    case ExpressionKind::in: return in(expr);
    default: break;
  }
  const bool condition = expr.op == ExpressionKind::logical_not;
  if (condition) {
    const auto value = write(expr.children.front(), ValueKind::boolean);
    if (!value) return value;
    return typed(expr, builder_.unary(expr.op, value->id));
  }
  const auto ids = operands(expr.children);
  if (!ids) return std::unexpected(ids.error());
  if (expr.op == ExpressionKind::is_null) return typed(expr, builder_.unary(expr.op, ids->front()));
  if (expr.op == ExpressionKind::between) {
    return typed(expr, builder_.between(ids->at(0), ids->at(1), ids->at(2)));
  }
  return typed(expr, builder_.binary(expr.op, ids->at(0), ids->at(1)));
}

SqlResult<NodeWriter::Written> NodeWriter::write(const Expr& expr, ValueKind wanted) {
  if (is_literal(expr)) return literal(expr, wanted);
  switch (expr.kind) {
    case ExprKind::column: {
      const auto column = schema_.find(expr.text);
      if (!column) return wrong(expr, "the table has no column " + expr.text);
      return typed(expr, builder_.column(*column));
    }
    case ExprKind::negate: return negate(expr);
    case ExprKind::divide: return wrong(expr, "only aggregates may be divided");
    case ExprKind::aggregate: return wrong(expr, "an aggregate cannot stand here");
    default: return operation(expr);
  }
}

}  // namespace espalier::sql

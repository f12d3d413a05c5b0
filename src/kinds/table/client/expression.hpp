// SPDX-License-Identifier: Apache-2.0
// What stands behind an Expr: a tree that copies share. Columns are names, for their table is not
// known yet; what is wrong already is remembered, and told when the query is run.
//
// Trees are bounded: one that has become too large has no children, and is refused.
//
// Thread: immutable; safe to read from any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "espalier/expression.hpp"
#include "kinds/table/pipeline.hpp"

namespace espalier::client {

struct ExprNode {
  /// More than a pipeline has room for, and few enough for recursion.
  static constexpr std::uint32_t kNodesMax = 1024;

  wire::ExpressionKind kind = wire::ExpressionKind::invalid;
  std::string problem;                     ///< why it cannot stand; empty: it can
  std::string column;                      ///< of a column
  std::string parameter;                   ///< of a constant that has a name; empty: it has none
  std::vector<table::Constant> constants;  ///< of a constant, in, like, matches
  bool ignores_case = false;               ///< of matches
  std::vector<std::shared_ptr<const ExprNode>> children;
  std::uint32_t nodes = 1;  ///< itself, and all below

  static const ExprNode& of(const Expr& expr) { return *expr.node_; }
  static const std::shared_ptr<const ExprNode>& shared(const Expr& expr) { return expr.node_; }
  static Expr handle(ExprNode node) {
    return Expr(std::make_shared<const ExprNode>(std::move(node)));
  }
  /// An operation on these. Too many nodes: one that cannot stand.
  static Expr operation(wire::ExpressionKind kind, std::initializer_list<Expr> operands);
};

/// A value as a pipeline has it; in `problem` why it has none, e.g. a decimal of too many digits.
[[nodiscard]] table::Constant constant_of(const Value& value, std::string& problem);

}  // namespace espalier::client

// SPDX-License-Identifier: Apache-2.0
// Implementation of Expr: an expression tree that copies share. Columns are names, because their
// table is not known yet; mistakes are recorded, and reported when the query runs.
//
// Trees are bounded: one that exceeds the bound has no children, and is refused.
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
  /// More than fit a pipeline, and few enough for recursion.
  static constexpr std::uint32_t kNodesMax = 1024;

  wire::ExpressionKind kind = wire::ExpressionKind::invalid;
  std::string problem;                     ///< the mistake; empty: none
  std::string column;                      ///< of a column
  std::string parameter;                   ///< of a named constant; else empty
  std::vector<table::Constant> constants;  ///< of a constant, in, like, matches
  bool ignores_case = false;               ///< of matches
  std::vector<std::shared_ptr<const ExprNode>> children;
  std::uint32_t nodes = 1;  ///< number of nodes in the subtree

  static const ExprNode& of(const Expr& expr) { return *expr.node_; }
  static const std::shared_ptr<const ExprNode>& shared(const Expr& expr) { return expr.node_; }
  static Expr handle(ExprNode node) {
    return Expr(std::make_shared<const ExprNode>(std::move(node)));
  }
  /// An operation on these. Beyond kNodesMax nodes: an invalid one.
  static Expr operation(wire::ExpressionKind kind, std::initializer_list<Expr> operands);
};

/// A value in a pipeline's form; `problem` says why it has none, e.g. a decimal with too many
/// digits.
[[nodiscard]] table::Constant constant_of(const Value& value, std::string& problem);

}  // namespace espalier::client

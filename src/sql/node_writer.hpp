// SPDX-License-Identifier: Apache-2.0
// Translates expressions of a query into nodes of a pipeline, with their types.
//
// Thread: one at a time.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kinds/table/pipeline_builder.hpp"
#include "sql/statement.hpp"

namespace espalier::sql {

class NodeWriter {
 public:
  using NodeId = table::PipelineBuilder::NodeId;

  struct Written {
    NodeId id;
    table::ValueType type;
  };

  /// All three outlive it; no other code gives the builder constants.
  NodeWriter(std::string_view text, const table::Schema& schema, table::PipelineBuilder& builder)
      : text_(text), schema_(schema), builder_(builder) {}

  /// Writes an expression; a literal becomes a constant of the wanted kind, if possible
  /// (sql/literals.hpp).
  SqlResult<Written> write(const Expr& expr, wire::ValueKind wanted);

 private:
  SqlResult<Written> literal(const Expr& expr, wire::ValueKind wanted);
  SqlResult<Written> operation(const Expr& expr);
  SqlResult<Written> balanced(const Expr& expr, std::span<const Expr> children);
  SqlResult<Written> negate(const Expr& expr);
  SqlResult<Written> like(const Expr& expr);
  SqlResult<Written> matches(const Expr& expr);
  SqlResult<Written> in(const Expr& expr);
  SqlResult<Written> in_one_by_one(const Expr& expr);
  SqlResult<std::vector<NodeId>> operands(std::span<const Expr> children);
  /// The type of the node that was built last, and its checks.
  SqlResult<Written> typed(const Expr& expr, NodeId id);
  NodeId constant(const table::Constant& value);

  [[nodiscard]] std::unexpected<SqlError> wrong(const Expr& expr, std::string reason) const {
    return refuse(text_, expr.position, std::move(reason));
  }

  std::string_view text_;
  const table::Schema& schema_;
  table::PipelineBuilder& builder_;
  std::vector<table::Constant> constants_;  // as the builder has them
  std::vector<table::Node> nodes_;
};

}  // namespace espalier::sql

// SPDX-License-Identifier: Apache-2.0
// Builds expressions from PostgreSQL's parse trees.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sql/parse_tree.hpp"
#include "sql/statement.hpp"

namespace espalier::sql {

class ExpressionParser {
 public:
  /// `table` and `alias`: allowed qualifiers of a column. They outlive it.
  ExpressionParser(std::string_view text, std::string_view table, std::string_view alias)
      : text_(text), table_(table), alias_(alias) {}

  /// Errors: what is outside the grammar.
  SqlResult<Expr> parse(const Json& node, unsigned depth = 0) const;

  /// Whether it is `*` or `t.*`.
  [[nodiscard]] bool is_star(const Json& node) const;

 private:
  SqlResult<Expr> column(const Json& members) const;
  SqlResult<Expr> constant(const Json& members) const;
  SqlResult<Expr> cast(const Json& members, unsigned depth) const;
  SqlResult<Expr> call(const Json& members, unsigned depth) const;
  SqlResult<Expr> operation(const Json& members, unsigned depth) const;
  SqlResult<Expr> binary(const Json& members, const std::string& sign, unsigned depth) const;
  SqlResult<Expr> with_list(const Json& members, const std::string& kind, unsigned depth) const;
  SqlResult<Expr> with_pattern(const Json& members, const std::string& sign, unsigned depth) const;
  SqlResult<Expr> boolean(const Json& members, unsigned depth) const;
  SqlResult<Expr> null_test(const Json& members, unsigned depth) const;

  [[nodiscard]] std::unexpected<SqlError> refuse_at(const Json& node, std::string reason) const {
    return refuse(text_, position_of(node, 0), std::move(reason));
  }

  std::string_view text_;
  std::string_view table_;
  std::string_view alias_;
};

}  // namespace espalier::sql

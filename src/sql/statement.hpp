// SPDX-License-Identifier: Apache-2.0
// A query as it was written, before its table is known:
//
//   select [distinct] item, ... from t [where e] [group by c, ...] [limit n]
//
// PostgreSQL's own parser reads it; what it accepts beyond this grammar is refused with its
// position and word.
//
// Thread: values; parse() is safe from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/table/format/pipeline.hpp"

namespace espalier::sql {

/// A mistake in a query, in words for people.
struct SqlError {
  std::size_t position = 0;  ///< of the byte where it stands, from 0
  std::string word;          ///< what stands there
  std::string reason;

  /// E.g. "at 25, 'order': order by is not supported"; positions of messages count from 1.
  [[nodiscard]] std::string message() const;
};

template <class T>
using SqlResult = std::expected<T, SqlError>;

/// Kinds of expressions.
enum class ExprKind : std::uint8_t {
  column,
  integer,  // text: its digits, perhaps behind a minus
  decimal,  // text: digits with a point or an exponent
  string,
  date,  // text: as written behind the word date
  timestamp,
  boolean,  // text: true or false
  null,
  negate,     // -a
  divide,     // a / b
  operation,  // op, of the pipelines' nodes: arithmetic, comparison, and, or, not, is null,
              // between; in, like and matches: a, then constants
  aggregate,
};

inline constexpr std::string_view kIgnoreCase = "i";

struct Expr {
  ExprKind kind = ExprKind::null;
  std::size_t position = 0;
  std::string text;  ///< a literal, or a column's name; of matches: kIgnoreCase or nothing
  wire::ExpressionKind op = wire::ExpressionKind::invalid;
  wire::Aggregate aggregate = wire::Aggregate::none;
  std::vector<Expr> children;  ///< and, or: two and more

  /// Whether it is the same expression, at whatever position.
  [[nodiscard]] bool same_as(const Expr& other) const;
  [[nodiscard]] bool has_aggregate() const;
};

struct SelectItem {
  bool star = false;
  Expr expr;
  std::string name;  ///< behind `as`, or empty
};

struct Statement {
  std::string text;
  std::string table;
  std::size_t table_position = 0;
  bool distinct = false;
  std::vector<SelectItem> items;
  std::optional<Expr> where;
  std::vector<Expr> group_by;
  std::optional<std::uint64_t> limit;
};

/// Errors: whatever PostgreSQL refuses, and what is outside the grammar.
[[nodiscard]] SqlResult<Statement> parse(std::string_view text);

/// An error at a position of a query, whose word is what stands there.
[[nodiscard]] std::unexpected<SqlError> refuse(std::string_view text, std::size_t position,
                                               std::string reason);

}  // namespace espalier::sql

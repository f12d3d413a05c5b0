// SPDX-License-Identifier: Apache-2.0
// Expressions of queries: columns, constants, and operations on them.
//
//   col("price") * 2 > 9.95_dec && col("shop").in({"ab", "cd"}) && !col("day").is_null()
//
// Columns and types are checked when the query runs, not before.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "espalier/table.hpp"
#include "espalier/value.hpp"

namespace espalier {

namespace client {
struct ExprNode;
}  // namespace client

/// Whether matching ignores case.
enum class LetterCase : std::uint8_t { exact, ignored };

/// An expression over the columns of a row. A value, cheap to copy. Thread: const calls from any.
class Expr {
 public:
  /// A constant. Text is copied.
  template <Scalar T>
  Expr(const T& constant) : Expr(constant_of(Value(constant))) {}

  /// `%` stands for any text, `_` for one character of UTF-8, a backslash for what follows it.
  [[nodiscard]] Expr like(std::string_view pattern) const;
  /// Whether a regular expression matches anywhere in the text: SQL's `~`, or `~*` where case is
  /// ignored; negate it for `!~` and `!~*`. RE2's syntax and semantics; time linear in the text. A
  /// pattern has at most 1 KiB, a query at most 16 patterns. Allowed in conditions only. Nodes
  /// support it, and so do stores of this process that were opened with StoreOptions::regexes
  /// (espalier/regex.hpp); others refuse the query with unsupported.
  [[nodiscard]] Expr matches(std::string_view pattern,
                             LetterCase letters = LetterCase::exact) const;
  [[nodiscard]] Expr between(const Expr& low, const Expr& high) const;
  /// Whether it is one of these constants. Requires: at least one.
  [[nodiscard]] Expr in(std::initializer_list<Value> values) const {
    return in(std::span(values.begin(), values.size()));
  }
  [[nodiscard]] Expr in(std::span<const Value> values) const;
  [[nodiscard]] Expr is_null() const;
  [[nodiscard]] Expr is_not_null() const;

  friend Expr operator+(const Expr& a, const Expr& b) { return combined(Operator::add, a, b); }
  friend Expr operator-(const Expr& a, const Expr& b) { return combined(Operator::subtract, a, b); }
  friend Expr operator*(const Expr& a, const Expr& b) { return combined(Operator::multiply, a, b); }
  friend Expr operator-(const Expr& a) { return negated(a); }
  friend Expr operator==(const Expr& a, const Expr& b) { return combined(Operator::equal, a, b); }
  friend Expr operator!=(const Expr& a, const Expr& b) {
    return combined(Operator::not_equal, a, b);
  }
  friend Expr operator<(const Expr& a, const Expr& b) { return combined(Operator::less, a, b); }
  friend Expr operator<=(const Expr& a, const Expr& b) {
    return combined(Operator::less_equal, a, b);
  }
  friend Expr operator>(const Expr& a, const Expr& b) { return combined(Operator::greater, a, b); }
  friend Expr operator>=(const Expr& a, const Expr& b) {
    return combined(Operator::greater_equal, a, b);
  }
  /// Both sides are always evaluated, except where where() splits an `&&`.
  friend Expr operator&&(const Expr& a, const Expr& b) {
    return combined(Operator::logical_and, a, b);
  }
  friend Expr operator||(const Expr& a, const Expr& b) {
    return combined(Operator::logical_or, a, b);
  }
  friend Expr operator!(const Expr& a) { return not_of(a); }

 private:
  friend struct client::ExprNode;
  friend Expr col(std::string_view name);
  friend Expr parameter(std::string_view name, const Value& value);
  friend Expr null_of(const ColumnType& type);
  enum class Operator : std::uint8_t {
    add = 3,
    subtract = 4,
    multiply = 5,
    equal = 6,
    not_equal = 7,
    less = 8,
    less_equal = 9,
    greater = 10,
    greater_equal = 11,
    logical_and = 12,
    logical_or = 13,
  };
  explicit Expr(std::shared_ptr<const client::ExprNode> node) : node_(std::move(node)) {}
  static Expr constant_of(const Value& value);
  static Expr combined(Operator op, const Expr& a, const Expr& b);
  static Expr negated(const Expr& a);
  static Expr not_of(const Expr& a);

  std::shared_ptr<const client::ExprNode> node_;
};

/// The column of exactly this name.
[[nodiscard]] Expr col(std::string_view name);
/// A named constant, which runs of a prepared query (Query::prepare) may replace by another value
/// of its type; `value` is the default. Several parameters may share one name.
[[nodiscard]] Expr parameter(std::string_view name, const Value& value);
/// A null of this column type.
[[nodiscard]] Expr null_of(const ColumnType& type);

/// A column of an answer: an expression over each row, or a key of groups. A plain text names a
/// column. The output is named after the column, or after the expression's text, unless `as` gives
/// another name.
class Output {
 public:
  Output(Expr value) : value_(std::move(value)) {}
  template <TextLike T>
  Output(const T& column) : Output(col(column)) {}

  [[nodiscard]] Output as(std::string_view name) const {
    Output named = *this;
    named.name_ = name;
    return named;
  }
  [[nodiscard]] const Expr& value() const { return value_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  Expr value_;
  std::string name_;
};

/// An aggregate function over the rows of a group.
class Aggregate {
 public:
  enum class Function : std::uint8_t {
    count_rows = 1,
    count = 2,
    min = 3,
    max = 4,
    sum = 5,
    avg = 6
  };

  Aggregate(Function function, std::optional<Expr> of) : function_(function), of_(std::move(of)) {}
  [[nodiscard]] Aggregate as(std::string_view name) const {
    Aggregate named = *this;
    named.name_ = name;
    return named;
  }
  [[nodiscard]] Function function() const { return function_; }
  /// Empty: count() of rows.
  [[nodiscard]] const std::optional<Expr>& of() const { return of_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  Function function_;
  std::optional<Expr> of_;
  std::string name_;
};

/// Counts rows.
[[nodiscard]] inline Aggregate count() { return {Aggregate::Function::count_rows, std::nullopt}; }
/// Counts values that are not null.
[[nodiscard]] inline Aggregate count(Expr of) {
  return {Aggregate::Function::count, std::move(of)};
}
/// min, max, sum and avg of no values are null. Sums of integers and decimals are decimals of 128
/// bits; averages are doubles.
[[nodiscard]] inline Aggregate min(Expr of) { return {Aggregate::Function::min, std::move(of)}; }
[[nodiscard]] inline Aggregate max(Expr of) { return {Aggregate::Function::max, std::move(of)}; }
[[nodiscard]] inline Aggregate sum(Expr of) { return {Aggregate::Function::sum, std::move(of)}; }
[[nodiscard]] inline Aggregate avg(Expr of) { return {Aggregate::Function::avg, std::move(of)}; }

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// Expressions of queries: columns, constants, and what is made of them.
//
//   col("price") * 2 > 9.95_dec && col("shop").in({"ab", "cd"}) && !col("day").is_null()
//
// Nothing is checked before a query is run: then columns are looked for and types are.
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

/// Whether letters match those of the other case.
enum class LetterCase : std::uint8_t { exact, ignored };

/// An expression over the columns of a row. A value, cheap to copy. Thread: const calls from any.
class Expr {
 public:
  /// A constant. Text is copied.
  template <Scalar T>
  Expr(const T& constant) : Expr(constant_of(Value(constant))) {}

  /// `%` stands for any text, `_` for one character of UTF-8, a backslash for what follows it.
  [[nodiscard]] Expr like(std::string_view pattern) const;
  /// Whether a regular expression matches anywhere in the text: SQL's `~` here, and `~*` where case
  /// is ignored; `!~` and `!~*` are `!` of these. It means what RE2 means, and takes time in
  /// proportion to the text; a pattern has at most 1 KiB, a query at most 16. In conditions alone.
  /// Nodes search them, and stores of this process that were opened with an engine for it
  /// (StoreOptions::regexes, espalier/regex.hpp); others refuse such a query with unsupported.
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
  /// Both sides are worked out always, but where where() takes an `&&` apart.
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

/// The column of this very name.
[[nodiscard]] Expr col(std::string_view name);
/// A constant with a name, for which runs of a prepared query (Query::prepare) may have other
/// values of this type. It is this value where none is given. Several may have one name.
[[nodiscard]] Expr parameter(std::string_view name, const Value& value);
/// Null, of what a column of this type holds.
[[nodiscard]] Expr null_of(const ColumnType& type);

/// A column of an answer: an expression of each row, or a key of groups. A text alone names a
/// column; its name is that of the column, or the expression's text, unless `as` gives another.
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

/// What becomes of a group's rows.
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
  /// Nothing: count() of rows.
  [[nodiscard]] const std::optional<Expr>& of() const { return of_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  Function function_;
  std::optional<Expr> of_;
  std::string name_;
};

/// Rows.
[[nodiscard]] inline Aggregate count() { return {Aggregate::Function::count_rows, std::nullopt}; }
/// Values that are not null.
[[nodiscard]] inline Aggregate count(Expr of) {
  return {Aggregate::Function::count, std::move(of)};
}
/// min, max, sum and avg of no values are null. Sums of integers and decimals are decimals of 128
/// bits, averages doubles.
[[nodiscard]] inline Aggregate min(Expr of) { return {Aggregate::Function::min, std::move(of)}; }
[[nodiscard]] inline Aggregate max(Expr of) { return {Aggregate::Function::max, std::move(of)}; }
[[nodiscard]] inline Aggregate sum(Expr of) { return {Aggregate::Function::sum, std::move(of)}; }
[[nodiscard]] inline Aggregate avg(Expr of) { return {Aggregate::Function::avg, std::move(of)}; }

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// A pipeline checked against a table's schema: the input of executors.
//
// Types. Integers of any width are integers of 64 bits, float and double are reals. `+ - *` take
// numbers: a real makes the result a real, else a decimal makes it a decimal of 18 digits, whose
// scale is the greater one for + and -, the sum for *. Comparisons take two numbers, or two values
// of one kind; numbers compare exactly, but as reals if one is a real. If one is a column of
// char(n), trailing blanks of constants are ignored like those of the column. There are no other
// conversions.
//
// Results are rows of a schema too, `result`. A group's row holds its keys, then for each aggregate
// the partial state that is merged for rows of one group:
//
//   count(*), count     i64
//   min, max            the value; null before the first
//   sum of reals        f64; null before the first
//   sum of other        i64, i64: low and high half of 128 bits; null before the first
//   avg                 its sum, then an i64: how many
//
// Thread: immutable; safe to read from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kinds/table/format/pipeline.hpp"
#include "kinds/table/pipeline_message.hpp"
#include "kinds/table/schema.hpp"
#include "regex/regex.hpp"

namespace espalier::table {

/// Type of a node of an expression, or of a constant.
struct ValueType {
  wire::ValueKind kind = wire::ValueKind::invalid;
  std::uint8_t scale = 0;  ///< of decimals
  bool nullable = false;   ///< false: never null
  Type stored;             ///< its type in a row of a result
};

/// The type of a column's values in expressions.
[[nodiscard]] ValueType value_type(const Column& column);

struct Constant {
  ValueType type;
  bool null = false;
  std::int64_t number = 0;  ///< all kinds but reals and text
  double real = 0;
  std::string text;
};

/// A node of an expression; `a`, `b`, `c` as in wire::ExpressionNode.
struct Node {
  wire::ExpressionKind kind;
  std::uint16_t a;
  std::uint16_t b;
  std::uint16_t c;
  ValueType type;
};

struct Filter {
  std::uint32_t operator_index;
  std::uint16_t node;
};

/// A column of the query's answer, and the columns of the result that carry it.
struct Item {
  wire::Aggregate aggregate;
  std::uint16_t node;  ///< kNoExpression of count(*)
  ValueType argument;  ///< type of that node
  std::uint16_t first_column = 0;
  std::uint16_t columns = 1;
};

struct Pipeline {
  Schema schema;         ///< the table's
  bool decrypt = false;  ///< the table's rows
  bool encrypt = false;  ///< the result's
  wire::Addressing addressing = wire::Addressing::automatic;
  /// Those of the message; after them, where char(n) is compared with texts that end in blanks, the
  /// same texts without these.
  std::vector<Constant> constants;
  /// Those of the message; after them, if all columns are wanted, one for each column.
  std::vector<Node> nodes;
  std::vector<std::uint32_t> users;  ///< of the message's nodes: the operator that uses each
  std::vector<Filter> filters;
  std::vector<Item> items;
  std::uint32_t items_operator = 0;  ///< operator that evaluates the items
  bool distinct = false;
  bool grouped = false;
  std::uint16_t keys = 0;  ///< items that are keys of groups: the first ones
  std::optional<std::uint64_t> limit;
  Schema result;
  /// By node, for those that are regular expressions; empty before compile_regexes().
  std::vector<std::shared_ptr<const Regex>> regexes;

  /// Columns of the result that hold keys: of groups, or with distinct all.
  [[nodiscard]] std::size_t key_columns() const {
    return grouped ? keys : distinct ? result.columns().size() : 0;
  }
};

/// Checks everything that can be checked before a row is read. Errors: the operator, and why. Cost:
/// linear in the message.
[[nodiscard]] PipelineResult<Pipeline> check_pipeline(const PipelineMessage& message,
                                                      const Schema& schema);
/// decode_pipeline(), then check_pipeline().
[[nodiscard]] PipelineResult<Pipeline> check_pipeline(std::span<const std::byte> bytes,
                                                      const Schema& schema);

/// Compiles the regular expressions of a pipeline; required before an executor runs one that has
/// any. Errors: the operator, and the compiler's message. Cost: the compiler's.
[[nodiscard]] PipelineResult<void> compile_regexes(Pipeline& pipeline, RegexCompiler& compiler);

/// Whether `+ - *` and sums accept it.
[[nodiscard]] bool is_numeric(wire::ValueKind kind);
/// An expression as text, for errors: columns by name, constants as literals.
[[nodiscard]] std::string expression_text(const Pipeline& pipeline, std::uint16_t node);

}  // namespace espalier::table

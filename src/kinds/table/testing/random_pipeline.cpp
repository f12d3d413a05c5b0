// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/testing/random_pipeline.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "kinds/table/row_values.hpp"
#include "kinds/table/testing/literal_regexes.hpp"
#include "kinds/table/testing/random_table.hpp"

namespace espalier::table {
namespace {

using wire::Aggregate;
using wire::ExpressionKind;
using wire::ValueKind;

std::string random_pattern_text(base::Random& random, std::size_t bytes_max) {
  constexpr std::array<std::string_view, 6> kPieces = {"a", "b", "\xC3\xA9", "%", " ", "_"};
  std::string text;
  for (std::uint64_t n = random.below(4); n-- > 0;) {
    const std::string_view piece = kPieces[random.below(random.chance(0.9) ? 3 : 6)];
    if (text.size() + piece.size() <= bytes_max) text += piece;
  }
  return text;
}

double random_real(base::Random& random, bool wild) {
  if (wild) {
    constexpr std::array kWild = {std::numeric_limits<double>::quiet_NaN(),
                                  std::numeric_limits<double>::infinity(), -0.0, 1e300};
    return kWild[random.below(kWild.size())];
  }
  return static_cast<double>(random.below(9)) / 4 - 1;
}

std::int64_t random_number(base::Random& random, const Type& type, bool wild) {
  const IntegerRange range = range_of(type);
  if (wild) {
    const std::int64_t any[] = {range.low, range.high, range.high / 2 + 1};
    return any[random.below(3)];
  }
  const std::int64_t number = static_cast<std::int64_t>(random.below(9)) - 3;
  return std::min(std::max(number, range.low), range.high);
}

Value random_value(base::Random& random, const Column& column, bool wild) {
  if (column.nullable && random.chance(0.2)) return {};
  if (is_textual(column.type.kind)) {
    return Value::of_text(random_pattern_text(random, column.type.length));
  }
  if (is_floating(column.type.kind)) {
    const double real = random_real(random, wild);
    return Value::of_real(column.type.kind == ColumnType::f32 && real == 1e300 ? 1e30 : real);
  }
  return Value::of(random_number(random, column.type, wild));
}

/// Sets bytes that say nothing: of nulls, behind texts, of bools, between columns.
void disturb(base::Random& random, const Schema& schema, std::byte* row) {
  std::vector<std::byte> other(schema.row_bytes());
  random.fill(other);
  for (const Column& column : schema.columns()) {
    std::byte* const from = other.data() + column.offset;
    std::byte* const to = row + column.offset;
    std::size_t kept = column.bytes;
    if (is_null(column, row)) kept = 0;
    if (kept != 0 && column.type.kind == ColumnType::text) {
      kept = 2 + load_text(column, row).size();
    }
    const bool is_true = column.type.kind == ColumnType::boolean && kept != 0;
    std::memcpy(from, to, kept);
    if (is_true && *to != std::byte{0}) *from = std::byte{0x80};
    if (column.nullable) {
      other[column.null_byte] = (other[column.null_byte] & ~std::byte{column.null_mask}) |
                                (row[column.null_byte] & std::byte{column.null_mask});
    }
  }
  std::memcpy(row, other.data(), other.size());
}

class Generator {
 public:
  Generator(base::Random& random, const Schema& schema) : random_(random), schema_(schema) {}

  PipelineBuilder run();

 private:
  using NodeId = PipelineBuilder::NodeId;

  template <std::size_t N>
  ExpressionKind one_of(const std::array<ExpressionKind, N>& kinds) {
    return kinds[random_.below(N)];
  }
  /// A column of this kind, or none.
  std::optional<std::size_t> column_of(ValueKind kind);
  ValueKind random_kind();
  Constant constant_of(ValueKind kind);
  Constant pattern();
  NodeId value(ValueKind kind, unsigned depth);
  NodeId number(unsigned depth);
  NodeId condition(unsigned depth);
  NodeId predicate(unsigned depth);
  void group();
  void project();

  base::Random& random_;
  const Schema& schema_;
  PipelineBuilder builder_;
};

std::optional<std::size_t> Generator::column_of(ValueKind kind) {
  const std::size_t columns = schema_.columns().size();
  const std::size_t first = random_.below(columns);
  for (std::size_t i = 0; i < columns; ++i) {
    const std::size_t at = (first + i) % columns;
    const ValueKind own = value_type(schema_.column(at)).kind;
    if (own == kind || (is_numeric(own) && is_numeric(kind))) return at;
  }
  return std::nullopt;
}

ValueKind Generator::random_kind() {
  if (random_.chance(0.1)) return static_cast<ValueKind>(1 + random_.below(7));
  return value_type(schema_.column(random_.below(schema_.columns().size()))).kind;
}

Constant Generator::constant_of(ValueKind kind) {
  if (is_numeric(kind) && random_.chance(0.3)) {
    kind = static_cast<ValueKind>(static_cast<unsigned>(ValueKind::integer) + random_.below(3));
  }
  if (random_.chance(0.05)) return null_constant(kind);
  const bool wild = random_.chance(0.03);
  const std::int64_t small = static_cast<std::int64_t>(random_.below(9)) - 3;
  switch (kind) {
    case ValueKind::boolean: return boolean_constant(random_.chance(0.5));
    case ValueKind::integer:
      return integer_constant(wild ? std::numeric_limits<std::int64_t>::max() : small);
    case ValueKind::decimal: {
      const auto scale = static_cast<unsigned>(random_.below(random_.chance(0.1) ? 19 : 4));
      return decimal_constant(small * power_of_ten(std::min(scale, 2u)), scale);
    }
    case ValueKind::real: return real_constant(random_real(random_, wild));
    case ValueKind::date: return date_constant(static_cast<std::int32_t>(small));
    case ValueKind::timestamp: return timestamp_constant(small);
    default: {
      const std::string text = random_pattern_text(random_, 20);
      return text_constant(random_.chance(0.1) ? text + "  " : text);
    }
  }
}

Constant Generator::pattern() {
  constexpr std::array<std::string_view, 12> kPatterns = {
      "a",   "B",        "ab",   "^a",   "b$",      "[ab]+\xC3\xA9",
      "a.b", "\xC3\xA9", "^.?$", "[^a]", "(a|bb)%", ""};
  if (random_.chance(0.05)) return null_constant(ValueKind::text);
  return text_constant(kPatterns[random_.below(kPatterns.size())]);
}

Generator::NodeId Generator::number(unsigned depth) {
  constexpr std::array kOps = {ExpressionKind::add, ExpressionKind::subtract,
                               ExpressionKind::multiply};
  if (depth > 0 && random_.chance(0.4)) {
    const NodeId a = number(depth - 1);
    const NodeId b = number(depth - 1);
    return builder_.binary(one_of(kOps), a, b);
  }
  const auto column = column_of(ValueKind::integer);
  if (column && random_.chance(0.7)) return builder_.column(*column);
  return builder_.constant(constant_of(ValueKind::integer));
}

Generator::NodeId Generator::value(ValueKind kind, unsigned depth) {
  if (is_numeric(kind)) return number(depth);
  if (kind == ValueKind::boolean && depth > 0 && random_.chance(0.5)) return condition(depth - 1);
  const auto column = column_of(kind);
  if (column && random_.chance(0.7)) return builder_.column(*column);
  return builder_.constant(constant_of(kind));
}

Generator::NodeId Generator::predicate(unsigned depth) {
  constexpr std::array kComparisons = {ExpressionKind::equal,   ExpressionKind::not_equal,
                                       ExpressionKind::less,    ExpressionKind::less_equal,
                                       ExpressionKind::greater, ExpressionKind::greater_equal};
  const ValueKind kind = random_kind();
  const NodeId a = value(kind, depth);
  switch (random_.below(kind == ValueKind::text ? 7 : 5)) {
    case 0: return builder_.unary(ExpressionKind::is_null, a);
    case 1: {
      const NodeId low = value(kind, depth);
      return builder_.between(a, low, value(kind, depth));
    }
    case 2: {
      std::vector<Constant> constants;
      for (std::uint64_t n = 1 + random_.below(random_.chance(0.1) ? 40 : 3); n-- > 0;) {
        constants.push_back(constant_of(kind));
      }
      return builder_.in(a, constants);
    }
    case 5: return builder_.like(a, constant_of(kind));
    case 6: return builder_.matches(a, pattern(), random_.chance(0.3));
    default: return builder_.binary(one_of(kComparisons), a, value(kind, depth));
  }
}

Generator::NodeId Generator::condition(unsigned depth) {
  constexpr std::array kConnectives = {ExpressionKind::logical_and, ExpressionKind::logical_or};
  if (depth > 0 && random_.chance(0.4)) {
    const NodeId a = condition(depth - 1);
    return builder_.binary(one_of(kConnectives), a, condition(depth - 1));
  }
  if (depth > 0 && random_.chance(0.2)) {
    return builder_.unary(ExpressionKind::logical_not, condition(depth - 1));
  }
  if (random_.chance(0.15)) return value(ValueKind::boolean, 0);
  return predicate(std::min(depth, 1u));
}

void Generator::project() {
  std::vector<NodeId> values;
  if (random_.chance(0.8)) {
    for (std::uint64_t n = 1 + random_.below(4); n-- > 0;) {
      values.push_back(value(random_kind(), 2));
    }
    builder_.project(values);
  }
  if (random_.chance(0.4)) builder_.distinct();
}

void Generator::group() {
  std::vector<NodeId> keys;
  std::vector<PipelineBuilder::AggregateOf> aggregates;
  for (std::uint64_t n = random_.below(3); n-- > 0;) keys.push_back(value(random_kind(), 1));
  for (std::uint64_t n = (keys.empty() ? 1 : 0) + random_.below(5); n-- > 0;) {
    const auto aggregate = static_cast<Aggregate>(1 + random_.below(6));
    NodeId node = wire::kNoExpression;
    if (aggregate == Aggregate::sum || aggregate == Aggregate::avg) {
      node = number(1);
    } else if (aggregate != Aggregate::count_rows) {
      node = value(random_kind(), 1);
    }
    aggregates.push_back({aggregate, node});
  }
  builder_.group_by(keys, aggregates);
}

PipelineBuilder Generator::run() {
  builder_.address(static_cast<wire::Addressing>(random_.below(3)));
  for (std::uint64_t n = random_.below(3); n-- > 0;) {
    builder_.filter(condition(static_cast<unsigned>(random_.below(4))));
  }
  if (random_.chance(0.5)) {
    group();
  } else {
    project();
  }
  if (random_.chance(0.2)) builder_.limit(random_.below(300));
  return std::move(builder_);
}

}  // namespace

Schema random_small_schema(base::Random& random) {
  std::vector<ColumnSpec> columns;
  for (std::uint64_t n = 1 + random.below(8); n-- > 0;) {
    Type type = random_type(random);
    if (!random.chance(0.1)) {
      if (type.length != 0) type.length = static_cast<std::uint16_t>(1 + random.below(12));
      if (type.kind == ColumnType::decimal) {
        type.precision = static_cast<std::uint8_t>(8 + random.below(5));
        type.scale = static_cast<std::uint8_t>(random.below(4));
      }
    }
    columns.push_back({"c" + std::to_string(n), type, random.chance(0.6)});
  }
  return Schema::make(columns).value();
}

MemoryRows random_small_rows(base::Random& random, const Schema& schema, std::size_t count,
                             unsigned wild) {
  std::vector<std::byte> rows(count * schema.row_bytes());
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* const row = rows.data() + i * schema.row_bytes();
    for (const Column& column : schema.columns()) {
      write_value(column, random_value(random, column, random.below(1000) < wild), row);
    }
    disturb(random, schema, row);
  }
  return {schema, std::move(rows)};
}

PipelineBuilder random_builder(base::Random& random, const Schema& schema) {
  return Generator(random, schema).run();
}

Pipeline random_pipeline(base::Random& random, const Schema& schema, RegexCompiler* regexes) {
  LiteralRegexes literal;
  // A few have products of too many places, or rows that are too long.
  for (;;) {
    const auto bytes = random_builder(random, schema).finish();
    if (!bytes) continue;
    auto pipeline = check_pipeline(*bytes, schema);
    if (!pipeline) continue;
    const auto compiled = compile_regexes(*pipeline, regexes ? *regexes : literal);
    ESPALIER_ASSERT(compiled.has_value());
    return *std::move(pipeline);
  }
}

}  // namespace espalier::table

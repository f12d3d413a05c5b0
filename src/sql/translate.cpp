// SPDX-License-Identifier: Apache-2.0
// Statements as pipelines.
#include <algorithm>
#include <utility>

#include "kinds/table/pipeline_builder.hpp"
#include "kinds/table/pipeline_types.hpp"
#include "regex/regex_cache.hpp"
#include "sql/literals.hpp"
#include "sql/node_writer.hpp"
#include "sql/query.hpp"

namespace espalier::sql {
namespace {

using table::PipelineBuilder;
using table::Schema;
using table::ValueType;
using wire::Aggregate;
using wire::ExpressionKind;
using wire::ValueKind;

/// Conditions at the top that become filters of their own; the rest stays one.
constexpr std::size_t kFiltersMax = 32;

class Translation {
 public:
  Translation(const Statement& statement, const Schema& schema, Encryption encryption)
      : statement_(statement), schema_(schema), nodes_(statement.text, schema, builder_) {
    if (encryption.table) builder_.decrypt();
    if (encryption.result) builder_.encrypt();
  }

  SqlResult<Query> run();

 private:
  SqlResult<void> where();
  SqlResult<void> project();
  SqlResult<void> group();
  SqlResult<Output> output_of(const Expr& expr);
  SqlResult<Output> arithmetic(const Expr& expr);
  SqlResult<Output> aggregate(const Expr& expr);
  SqlResult<Output> key(const Expr& expr);
  SqlResult<Query> finish();

  [[nodiscard]] bool groups() const {
    return !statement_.group_by.empty() ||
           std::ranges::any_of(statement_.items, [](const SelectItem& item) {
             return !item.star && item.expr.has_aggregate();
           });
  }
  [[nodiscard]] std::unexpected<SqlError> wrong(std::size_t position, std::string reason) const {
    return refuse(statement_.text, position, std::move(reason));
  }
  void name_column(const SelectItem& item, Output output);

  const Statement& statement_;
  const Schema& schema_;
  PipelineBuilder builder_;
  NodeWriter nodes_;
  std::vector<Expr> aggregates_;  // those of the pipeline, each once
  std::vector<PipelineBuilder::AggregateOf> aggregate_nodes_;
  std::vector<ValueType> item_types_;
  std::vector<OutputColumn> columns_;
  bool distinct_here_ = false;
};

SqlResult<void> Translation::where() {
  if (!statement_.where) return {};
  const Expr& condition = *statement_.where;
  const bool several = condition.kind == ExprKind::operation &&
                       condition.op == ExpressionKind::logical_and &&
                       condition.children.size() <= kFiltersMax;
  const std::span<const Expr> parts =
      several ? std::span<const Expr>(condition.children) : std::span(&condition, 1);
  for (const Expr& part : parts) {
    const auto node = nodes_.write(part, ValueKind::boolean);
    if (!node) return std::unexpected(node.error());
    if (node->type.kind != ValueKind::boolean) {
      return wrong(part.position,
                   "where takes a condition, not " + std::string(table::name_of(node->type.kind)));
    }
    builder_.filter(node->id);
  }
  return {};
}

void Translation::name_column(const SelectItem& item, Output output) {
  std::string name = item.name;
  if (name.empty() && item.expr.kind == ExprKind::column) name = item.expr.text;
  if (name.empty() && item.expr.kind == ExprKind::aggregate) {
    const bool counts = item.expr.aggregate == Aggregate::count_rows;
    name = counts ? "count" : std::string(table::name_of(item.expr.aggregate));
  }
  if (name.empty()) name = "?column?";
  columns_.push_back({std::move(name), std::move(output)});
}

SqlResult<void> Translation::project() {
  std::vector<PipelineBuilder::NodeId> values;
  const auto add = [&](const ValueType& type, const SelectItem& item) {
    Output output;
    output.item = columns_.size();
    output.type = type;
    name_column(item, std::move(output));
  };
  // All columns and nothing else need no node each.
  const bool all = statement_.items.size() == 1 && statement_.items.front().star;
  for (const SelectItem& item : statement_.items) {
    if (item.star) {
      for (std::size_t i = 0; i < schema_.columns().size(); ++i) {
        if (!all) values.push_back(builder_.column(i));
        add(value_type(schema_.column(i)), {false, {}, schema_.column(i).name});
      }
      continue;
    }
    const auto node = nodes_.write(item.expr, ValueKind::invalid);
    if (!node) return std::unexpected(node.error());
    values.push_back(node->id);
    add(node->type, item);
  }
  if (!all) builder_.project(values);
  if (statement_.distinct) builder_.distinct();
  if (statement_.limit) builder_.limit(*statement_.limit);
  return {};
}

SqlResult<Output> Translation::key(const Expr& expr) {
  const auto& keys = statement_.group_by;
  const auto found = std::ranges::find_if(keys, [&](const Expr& k) { return k.same_as(expr); });
  if (found == keys.end()) {
    return wrong(expr.position,
                 "the column " + expr.text + " stands neither behind group by nor in an aggregate");
  }
  Output output;
  output.item = static_cast<std::size_t>(found - keys.begin());
  output.type = item_types_[output.item];
  return output;
}

SqlResult<Output> Translation::aggregate(const Expr& expr) {
  Output output;
  const auto known =
      std::ranges::find_if(aggregates_, [&](const Expr& other) { return other.same_as(expr); });
  output.item = statement_.group_by.size() + static_cast<std::size_t>(known - aggregates_.begin());
  if (known == aggregates_.end()) {
    table::Item item{expr.aggregate, wire::kNoExpression, {}};
    if (expr.aggregate != Aggregate::count_rows) {
      const auto node = nodes_.write(expr.children.front(), ValueKind::invalid);
      if (!node) return std::unexpected(node.error());
      item.node = node->id;
      item.argument = node->type;
      const bool adds = expr.aggregate == Aggregate::sum || expr.aggregate == Aggregate::avg;
      if (adds && !table::is_numeric(node->type.kind)) {
        return wrong(expr.position, std::string(table::name_of(expr.aggregate)) +
                                        " takes numbers, not " +
                                        std::string(table::name_of(node->type.kind)));
      }
    }
    aggregates_.push_back(expr);
    aggregate_nodes_.push_back({expr.aggregate, item.node});
    item_types_.push_back(answer_type(item));
  }
  output.type = item_types_[output.item];
  return output;
}

SqlResult<Output> Translation::arithmetic(const Expr& expr) {
  Output output;
  for (const Expr& child : expr.children) {
    auto operand = output_of(child);
    if (!operand) return operand;
    if (!table::is_numeric(operand->type.kind)) {
      return wrong(child.position, "arithmetic takes numbers, not " +
                                       std::string(table::name_of(operand->type.kind)));
    }
    output.children.push_back(*std::move(operand));
  }
  const ValueType a = output.children.front().type;
  const ValueType b = output.children.back().type;
  const bool nullable = a.nullable || b.nullable || expr.kind == ExprKind::divide;
  const bool real = a.kind == ValueKind::real || b.kind == ValueKind::real;
  unsigned scale = std::max(a.scale, b.scale);
  if (expr.kind == ExprKind::negate) {
    output.kind = Output::Kind::negate;
    output.type = a;
    return output;
  }
  if (expr.kind == ExprKind::divide) {
    output.kind = Output::Kind::divide;
  } else {
    output.kind = expr.op == ExpressionKind::add        ? Output::Kind::add
                  : expr.op == ExpressionKind::subtract ? Output::Kind::subtract
                                                        : Output::Kind::multiply;
    if (expr.op == ExpressionKind::multiply) scale = unsigned{a.scale} + b.scale;
  }
  if (real || expr.kind == ExprKind::divide) {
    output.type = table::computed_type(ValueKind::real, 0, nullable);
    return output;
  }
  if (scale > 36) return wrong(expr.position, "the product has more than 36 decimal places");
  const bool integers = a.kind == ValueKind::integer && b.kind == ValueKind::integer;
  output.type = table::computed_type(integers ? ValueKind::integer : ValueKind::decimal,
                                     static_cast<std::uint8_t>(scale), nullable);
  return output;
}

SqlResult<Output> Translation::output_of(const Expr& expr) {
  if (is_literal(expr)) {
    const auto constant = constant_of(expr, ValueKind::invalid);
    if (!constant) return wrong(expr.position, constant.error());
    Output output;
    output.kind = Output::Kind::constant;
    output.type = constant->type;
    output.constant = {constant->null, constant->number, constant->real, constant->text};
    return output;
  }
  switch (expr.kind) {
    case ExprKind::column: return key(expr);
    case ExprKind::aggregate: return aggregate(expr);
    case ExprKind::negate:
    case ExprKind::divide: return arithmetic(expr);
    default: break;
  }
  const bool sums = expr.op == ExpressionKind::add || expr.op == ExpressionKind::subtract ||
                    expr.op == ExpressionKind::multiply;
  if (sums) return arithmetic(expr);
  return wrong(expr.position, "over groups there is only arithmetic");
}

SqlResult<void> Translation::group() {
  std::vector<PipelineBuilder::NodeId> keys;
  for (const Expr& expr : statement_.group_by) {
    const auto node = nodes_.write(expr, ValueKind::invalid);
    if (!node) return std::unexpected(node.error());
    keys.push_back(node->id);
    item_types_.push_back(node->type);
  }
  for (const SelectItem& item : statement_.items) {
    if (item.star) return wrong(item.expr.position, "* cannot stand beside groups");
    auto output = output_of(item.expr);
    if (!output) return std::unexpected(std::move(output.error()));
    name_column(item, *std::move(output));
  }
  if (keys.empty() && aggregate_nodes_.empty()) {
    return wrong(0, "without a key or an aggregate there are no groups");
  }
  builder_.group_by(keys, aggregate_nodes_);
  distinct_here_ = statement_.distinct;
  if (statement_.limit && !distinct_here_) builder_.limit(*statement_.limit);
  return {};
}

SqlResult<Query> Translation::finish() {
  auto message = builder_.finish();
  if (!message) return wrong(0, message.error().message());
  auto pipeline = table::check_pipeline(*message, schema_);
  if (!pipeline) return wrong(0, pipeline.error().message());
  regex::RegexCache regexes;
  if (auto compiled = table::compile_regexes(*pipeline, regexes); !compiled) {
    return wrong(0, compiled.error().message());
  }
  Query query{*std::move(message), *std::move(pipeline), std::move(columns_), distinct_here_, {}};
  if (distinct_here_) query.limit_here = statement_.limit;
  return query;
}

SqlResult<Query> Translation::run() {
  SqlResult<void> done = where();
  if (done) done = groups() ? group() : project();
  if (!done) return std::unexpected(std::move(done.error()));
  return finish();
}

}  // namespace

SqlResult<Query> translate(const Statement& statement, const table::Schema& schema,
                           Encryption encryption) {
  return Translation(statement, schema, encryption).run();
}

}  // namespace espalier::sql

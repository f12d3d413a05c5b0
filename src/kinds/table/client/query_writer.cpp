// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/query_writer.hpp"

#include <utility>

#include "kinds/table/client/expression.hpp"
#include "kinds/table/client/tables.hpp"
#include "kinds/table/pipeline_builder.hpp"
#include "kinds/table/result.hpp"

namespace espalier::client {
namespace {

using table::PipelineBuilder;
using wire::ExpressionKind;

/// Parts of conditions that become filters of their own; what is beyond stays together.
constexpr std::size_t kFiltersMax = 32;

using Node = const ExprNode*;

// The operands of `kind` in a row of such operations, left to right: `and` and `or` associate.
void flatten(const ExprNode& node, ExpressionKind kind, std::vector<Node>& parts) {
  if (node.kind != kind || !node.problem.empty()) {
    parts.push_back(&node);
    return;
  }
  for (const auto& child : node.children) flatten(*child, kind, parts);
}

class QueryWriter {
 public:
  QueryWriter(const QueryParts& parts, const table::Schema& schema)
      : parts_(parts), schema_(schema) {}

  TableResult<WrittenQuery> write();

 private:
  using NodeId = PipelineBuilder::NodeId;

  /// Writes an expression; what is wrong with it goes to problem_, the first that is.
  NodeId node(const ExprNode& expr);
  NodeId balanced(ExpressionKind kind, std::span<const Node> parts);
  NodeId column(const std::string& name);
  NodeId constant(const ExprNode& expr);
  void conditions();
  void outputs();
  TableResult<WrittenQuery> finish();
  void problem(const std::string& words) {
    if (problem_.empty()) problem_ = words;
  }

  const QueryParts& parts_;
  const table::Schema& schema_;
  PipelineBuilder builder_;
  std::vector<std::string> names_;  // that were given
  std::vector<WrittenQuery::Parameter> parameters_;
  std::string problem_;
};

QueryWriter::NodeId QueryWriter::column(const std::string& name) {
  const auto number = schema_.find(name);
  if (!number) problem("the table has no column " + table::quoted_name(name));
  return builder_.column(number.value_or(0));
}

QueryWriter::NodeId QueryWriter::constant(const ExprNode& expr) {
  const NodeId node = builder_.constant(expr.constants.front());
  if (!expr.parameter.empty()) {
    parameters_.push_back({expr.parameter, builder_.nodes()[node].a});
  }
  return node;
}

QueryWriter::NodeId QueryWriter::balanced(ExpressionKind kind, std::span<const Node> parts) {
  if (parts.size() == 1) return node(*parts.front());
  const std::size_t half = parts.size() / 2;
  const NodeId left = balanced(kind, parts.first(half));
  return builder_.binary(kind, left, balanced(kind, parts.subspan(half)));
}

QueryWriter::NodeId QueryWriter::node(const ExprNode& expr) {
  if (!expr.problem.empty()) {
    problem(expr.problem);
    return 0;
  }
  switch (expr.kind) {
    case ExpressionKind::column: return column(expr.column);
    case ExpressionKind::constant: return constant(expr);
    case ExpressionKind::logical_and:
    case ExpressionKind::logical_or: {
      std::vector<Node> parts;
      flatten(expr, expr.kind, parts);
      return balanced(expr.kind, parts);
    }
    default: break;
  }
  const NodeId a = node(*expr.children[0]);
  switch (expr.kind) {
    case ExpressionKind::logical_not:
    case ExpressionKind::is_null: return builder_.unary(expr.kind, a);
    case ExpressionKind::in: return builder_.in(a, expr.constants);
    case ExpressionKind::like: return builder_.like(a, expr.constants.front());
    case ExpressionKind::matches:
      return builder_.matches(a, expr.constants.front(), expr.ignores_case);
    default: break;
  }
  const NodeId b = node(*expr.children[1]);
  if (expr.kind != ExpressionKind::between) return builder_.binary(expr.kind, a, b);
  return builder_.between(a, b, node(*expr.children[2]));
}

void QueryWriter::conditions() {
  std::vector<Node> parts;
  for (const Expr& condition : parts_.conditions) {
    const std::size_t before = parts.size();
    flatten(ExprNode::of(condition), ExpressionKind::logical_and, parts);
    if (parts.size() <= kFiltersMax) continue;
    parts.resize(before);
    parts.push_back(&ExprNode::of(condition));
  }
  for (const Node part : parts) builder_.filter(node(*part));
}

void QueryWriter::outputs() {
  std::vector<NodeId> values;
  for (const Output& output : parts_.outputs) {
    values.push_back(node(ExprNode::of(output.value())));
    names_.push_back(output.name());
  }
  if (!parts_.grouped) {
    if (parts_.projected && values.empty()) problem("a query without columns");
    if (!values.empty()) builder_.project(values);
    if (parts_.distinct) builder_.distinct();
    return;
  }
  if (parts_.projected) problem("a query that groups has no other columns than its groups");
  if (values.empty() && parts_.aggregates.empty()) {
    problem("without a key or an aggregate there are no groups");
  }
  std::vector<PipelineBuilder::AggregateOf> aggregates;
  for (const Aggregate& aggregate : parts_.aggregates) {
    const bool rows = !aggregate.of().has_value();
    if (rows != (aggregate.function() == Aggregate::Function::count_rows)) {
      problem("only count() takes no expression");
    }
    const NodeId of = rows ? wire::kNoExpression : node(ExprNode::of(*aggregate.of()));
    aggregates.push_back({static_cast<wire::Aggregate>(aggregate.function()), of});
    names_.push_back(aggregate.name());
  }
  builder_.group_by(values, aggregates);
}

TableResult<WrittenQuery> QueryWriter::write() {
  if (parts_.decrypt) builder_.decrypt();
  if (parts_.encrypt) builder_.encrypt();
  conditions();
  outputs();
  if (parts_.limit) builder_.limit(*parts_.limit);
  if (problem_.empty()) return finish();
  return refuse_table({Code::invalid_argument, 0, 0}, problem_);
}

std::string own_name(const table::Pipeline& pipeline, const table::Item& item) {
  if (item.aggregate == wire::Aggregate::count_rows) return "count";
  const table::Node& root = pipeline.nodes[item.node];
  const std::string of = root.kind == ExpressionKind::column
                             ? pipeline.schema.column(root.a).name
                             : table::expression_text(pipeline, item.node);
  if (item.aggregate == wire::Aggregate::none) return of;
  return std::string(table::name_of(item.aggregate)) + "(" + of + ")";
}

ValueKind kind_of(const table::ValueType& type, wire::Aggregate aggregate) {
  // Of 128 bits.
  if (aggregate == wire::Aggregate::sum && type.kind == wire::ValueKind::integer) {
    return ValueKind::decimal;
  }
  return static_cast<ValueKind>(type.kind);
}

TableResult<WrittenQuery> QueryWriter::finish() {
  static_assert(static_cast<int>(ValueKind::boolean) == static_cast<int>(wire::ValueKind::boolean));
  static_assert(static_cast<int>(ValueKind::decimal) == static_cast<int>(wire::ValueKind::decimal));
  static_assert(static_cast<int>(ValueKind::real) == static_cast<int>(wire::ValueKind::real));
  static_assert(static_cast<int>(ValueKind::text) == static_cast<int>(wire::ValueKind::text));
  auto message = builder_.finish();
  if (!message) return refuse_table({Code::invalid_argument, 0, 0}, message.error().message());
  auto pipeline = table::check_pipeline(*message, schema_);
  if (!pipeline) return refuse_table({Code::invalid_argument, 0, 0}, pipeline.error().message());
  WrittenQuery query{*std::move(message), *std::move(pipeline), {}, std::move(parameters_)};
  for (std::size_t i = 0; i < query.pipeline.items.size(); ++i) {
    const table::Item& item = query.pipeline.items[i];
    const table::ValueType type = answer_type(item);
    const bool named = i < names_.size() && !names_[i].empty();
    query.columns.push_back({named ? names_[i] : own_name(query.pipeline, item),
                             kind_of(type, item.aggregate), type.scale, type.nullable});
  }
  return query;
}

}  // namespace

TableResult<WrittenQuery> write_query(const QueryParts& parts, const table::Schema& schema) {
  return QueryWriter(parts, schema).write();
}

}  // namespace espalier::client

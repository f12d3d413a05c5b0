// SPDX-License-Identifier: Apache-2.0
// The words of pipelines, for errors and explanations.
#include "kinds/table/pipeline_message.hpp"

namespace espalier::table {

using wire::Aggregate;
using wire::ExpressionKind;
using wire::OperatorKind;
using wire::ValueKind;

std::string_view name_of(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::decrypt: return "decrypt";
    case OperatorKind::scan: return "scan";
    case OperatorKind::filter: return "filter";
    case OperatorKind::regular_expression: return "regular expression";
    case OperatorKind::project: return "project";
    case OperatorKind::distinct: return "distinct";
    case OperatorKind::group_by: return "group by";
    case OperatorKind::limit: return "limit";
    case OperatorKind::encrypt: return "encrypt";
    case OperatorKind::pack: return "pack";
    case OperatorKind::invalid: break;
  }
  return "unknown operator";
}

std::string_view name_of(ExpressionKind kind) {
  switch (kind) {
    case ExpressionKind::column: return "column";
    case ExpressionKind::constant: return "constant";
    case ExpressionKind::add: return "+";
    case ExpressionKind::subtract: return "-";
    case ExpressionKind::multiply: return "*";
    case ExpressionKind::equal: return "=";
    case ExpressionKind::not_equal: return "<>";
    case ExpressionKind::less: return "<";
    case ExpressionKind::less_equal: return "<=";
    case ExpressionKind::greater: return ">";
    case ExpressionKind::greater_equal: return ">=";
    case ExpressionKind::logical_and: return "and";
    case ExpressionKind::logical_or: return "or";
    case ExpressionKind::logical_not: return "not";
    case ExpressionKind::is_null: return "is null";
    case ExpressionKind::between: return "between";
    case ExpressionKind::in: return "in";
    case ExpressionKind::like: return "like";
    case ExpressionKind::matches: return "~";
    case ExpressionKind::invalid: break;
  }
  return "unknown node";
}

std::string_view name_of(ValueKind kind) {
  switch (kind) {
    case ValueKind::boolean: return "boolean";
    case ValueKind::integer: return "integer";
    case ValueKind::decimal: return "decimal";
    case ValueKind::real: return "double";
    case ValueKind::date: return "date";
    case ValueKind::timestamp: return "timestamp";
    case ValueKind::text: return "text";
    case ValueKind::invalid: break;
  }
  return "unknown type";
}

std::string_view name_of(Aggregate aggregate) {
  switch (aggregate) {
    case Aggregate::none: return "value";
    case Aggregate::count_rows: return "count(*)";
    case Aggregate::count: return "count";
    case Aggregate::min: return "min";
    case Aggregate::max: return "max";
    case Aggregate::sum: return "sum";
    case Aggregate::avg: return "avg";
  }
  return "unknown aggregate";
}

unsigned children_of(ExpressionKind kind) {
  switch (kind) {
    case ExpressionKind::invalid:
    case ExpressionKind::column:
    case ExpressionKind::constant: return 0;
    case ExpressionKind::logical_not:
    case ExpressionKind::is_null:
    case ExpressionKind::in:
    case ExpressionKind::like:
    case ExpressionKind::matches: return 1;
    case ExpressionKind::between: return 3;
    default: return 2;
  }
}

std::string PipelineError::message() const {
  if (operator_index == kNoOperator) return reason;
  return "operator " + std::to_string(operator_index) + " (" + operator_name + "): " + reason;
}

}  // namespace espalier::table

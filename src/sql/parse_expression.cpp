// SPDX-License-Identifier: Apache-2.0
#include "sql/parse_expression.hpp"

#include <array>
#include <utility>

namespace espalier::sql {
namespace {

using wire::Aggregate;
using wire::ExpressionKind;

constexpr unsigned kDepthMax = 200;

struct Sign {
  std::string_view sign;
  ExpressionKind kind;
};

constexpr std::array kSigns = {
    Sign{"+", ExpressionKind::add},
    Sign{"-", ExpressionKind::subtract},
    Sign{"*", ExpressionKind::multiply},
    Sign{"=", ExpressionKind::equal},
    Sign{"<>", ExpressionKind::not_equal},
    Sign{"<", ExpressionKind::less},
    Sign{"<=", ExpressionKind::less_equal},
    Sign{">", ExpressionKind::greater},
    Sign{">=", ExpressionKind::greater_equal},
};

struct AggregateName {
  std::string_view name;
  Aggregate aggregate;
};

constexpr std::array kAggregates = {
    AggregateName{"count", Aggregate::count}, AggregateName{"min", Aggregate::min},
    AggregateName{"max", Aggregate::max},     AggregateName{"sum", Aggregate::sum},
    AggregateName{"avg", Aggregate::avg},
};

Expr literal(ExprKind kind, std::size_t position, std::string text) {
  Expr expr;
  expr.kind = kind;
  expr.position = position;
  expr.text = std::move(text);
  return expr;
}

Expr operation_of(ExpressionKind kind, std::size_t position, std::vector<Expr> children) {
  Expr expr;
  expr.kind = ExprKind::operation;
  expr.position = position;
  expr.op = kind;
  expr.children = std::move(children);
  return expr;
}

Expr negation_of(Expr expr, bool negate) {
  if (!negate) return expr;
  const std::size_t position = expr.position;
  std::vector<Expr> children;
  children.push_back(std::move(expr));
  return operation_of(ExpressionKind::logical_not, position, std::move(children));
}

/// The digits of an integer. The parser's JSON leaves out those below 0, whose text is at hand.
std::string integer_text(const Json& value, std::string_view text, std::size_t position) {
  const auto digits = value.find("ival");
  if (digits != value.end()) return digits->dump();
  if (position >= text.size() || text[position] != '-') return "0";
  std::string number = "-";
  for (std::size_t at = position + 1; at < text.size(); ++at) {
    const bool space = text[at] == ' ' || (text[at] >= '\t' && text[at] <= '\r');
    if (space && number.size() == 1) continue;
    if (text[at] < '0' || text[at] > '9') break;
    number += text[at];
  }
  return number;
}

}  // namespace

bool ExpressionParser::is_star(const Json& node) const {
  const TreeNode reference = tree_node(node);
  if (reference.kind != "ColumnRef") return false;
  const auto fields = reference.members->find("fields");
  if (fields == reference.members->end() || fields->empty()) return false;
  if (tree_node(fields->back()).kind != "A_Star") return false;
  if (fields->size() == 1) return true;
  const std::string before = string_of(fields->front());
  return fields->size() == 2 && (before == table_ || before == alias_);
}

SqlResult<Expr> ExpressionParser::column(const Json& members) const {
  const Json& fields = members.at("fields");
  if (fields.size() == 2) {
    const std::string before = string_of(fields.front());
    if (before.empty() || (before != table_ && before != alias_)) {
      return refuse_at(members, "there is only the table " + std::string(table_));
    }
  }
  const std::string name = string_of(fields.back());
  if (fields.size() > 2 || name.empty()) return refuse_at(members, "this is no column");
  return literal(ExprKind::column, position_of(members, 0), name);
}

SqlResult<Expr> ExpressionParser::constant(const Json& members) const {
  const std::size_t position = position_of(members, 0);
  if (members.contains("isnull")) return literal(ExprKind::null, position, "");
  if (const auto value = members.find("ival"); value != members.end()) {
    std::string digits = integer_text(*value, text_, position);
    if (digits == "-") return refuse_at(members, "write the number behind its sign");
    return literal(ExprKind::integer, position, std::move(digits));
  }
  if (const auto value = members.find("fval"); value != members.end()) {
    std::string digits = value->value("fval", "");
    const bool whole = digits.find_first_of(".eE") == std::string::npos;
    return literal(whole ? ExprKind::integer : ExprKind::decimal, position, std::move(digits));
  }
  if (const auto value = members.find("sval"); value != members.end()) {
    return literal(ExprKind::string, position, value->value("sval", ""));
  }
  if (const auto value = members.find("boolval"); value != members.end()) {
    return literal(ExprKind::boolean, position, value->value("boolval", false) ? "true" : "false");
  }
  return refuse_at(members, "literals of this kind are not supported");
}

SqlResult<Expr> ExpressionParser::cast(const Json& members, unsigned depth) const {
  const Json& type = members.at("typeName");
  const std::string name =
      type.contains("names") && !type["names"].empty() ? string_of(type["names"].back()) : "";
  auto value = parse(members.at("arg"), depth);
  if (!value) return value;
  const bool plain = !type.contains("typmods") && !type.contains("arrayBounds");
  if (plain && value->kind == ExprKind::string && (name == "date" || name == "timestamp")) {
    value->kind = name == "date" ? ExprKind::date : ExprKind::timestamp;
    return value;
  }
  return refuse(text_, position_of(type, value->position),
                "conversions to " + name + " are not supported");
}

SqlResult<Expr> ExpressionParser::call(const Json& members, unsigned depth) const {
  const Json& names = members.at("funcname");
  const std::string name = string_of(names.back());
  const auto* known = std::ranges::find(kAggregates, name, &AggregateName::name);
  if (names.size() != 1 || known == kAggregates.end()) {
    return refuse_at(members, "the function " + name + " is not supported");
  }
  if (members.contains("agg_distinct")) {
    return refuse_at(members, "distinct inside an aggregate is not supported");
  }
  const std::string* other =
      unlisted_member(members, {"funcname", "args", "agg_star", "funcformat", "location"});
  if (other) return refuse_at(members, "this form of an aggregate is not supported");
  Expr expr = literal(ExprKind::aggregate, position_of(members, 0), "");
  expr.aggregate = known->aggregate;
  const std::size_t arguments = members.contains("args") ? members["args"].size() : 0;
  if (members.contains("agg_star")) {
    if (name != "count") return refuse_at(members, "only count takes *");
    expr.aggregate = Aggregate::count_rows;
    return expr;
  }
  if (arguments != 1) return refuse_at(members, name + " takes one value");
  auto argument = parse(members["args"][0], depth);
  if (!argument) return argument;
  if (argument->has_aggregate()) return refuse_at(members, "aggregates of aggregates do not exist");
  expr.children.push_back(*std::move(argument));
  return expr;
}

SqlResult<Expr> ExpressionParser::binary(const Json& members, const std::string& sign,
                                         unsigned depth) const {
  const std::size_t position = members.value("location", std::size_t{0});
  auto right = parse(members.at("rexpr"), depth);
  if (!right) return right;
  if (!members.contains("lexpr")) {
    if (sign == "+") return right;
    if (sign != "-") return refuse(text_, position, "this operator is not supported");
    Expr negate = literal(ExprKind::negate, position, "");
    negate.children.push_back(*std::move(right));
    return negate;
  }
  auto left = parse(members["lexpr"], depth);
  if (!left) return left;
  std::vector<Expr> children;
  children.push_back(*std::move(left));
  children.push_back(*std::move(right));
  if (sign == "/") {
    Expr divide = literal(ExprKind::divide, position, "");
    divide.children = std::move(children);
    return divide;
  }
  const auto* known = std::ranges::find(kSigns, sign, &Sign::sign);
  if (known == kSigns.end()) return refuse(text_, position, "this operator is not supported");
  return operation_of(known->kind, position, std::move(children));
}

SqlResult<Expr> ExpressionParser::with_list(const Json& members, const std::string& kind,
                                            unsigned depth) const {
  const std::size_t position = members.value("location", std::size_t{0});
  const bool between = kind == "AEXPR_BETWEEN" || kind == "AEXPR_NOT_BETWEEN";
  const TreeNode list = tree_node(members.at("rexpr"));
  if (list.kind != "List") return refuse(text_, position, "this form of in is not supported");
  std::vector<Expr> children;
  auto left = parse(members.at("lexpr"), depth);
  if (!left) return left;
  children.push_back(*std::move(left));
  for (const Json& item : list.members->at("items")) {
    auto one = parse(item, depth);
    if (!one) return one;
    children.push_back(*std::move(one));
  }
  const bool negate =
      kind == "AEXPR_NOT_BETWEEN" || (!between && string_of(members.at("name").back()) == "<>");
  const ExpressionKind op = between ? ExpressionKind::between : ExpressionKind::in;
  return negation_of(operation_of(op, position, std::move(children)), negate);
}

/// like, whose signs are ~~ and !~~, and regular expressions.
SqlResult<Expr> ExpressionParser::with_pattern(const Json& members, const std::string& sign,
                                               unsigned depth) const {
  const std::size_t position = members.value("location", std::size_t{0});
  const bool like = sign == "~~" || sign == "!~~";
  auto left = parse(members.at("lexpr"), depth);
  if (!left) return left;
  auto pattern = parse(members.at("rexpr"), depth);
  if (!pattern) return pattern;
  if (pattern->kind != ExprKind::string && pattern->kind != ExprKind::null) {
    return refuse(text_, pattern->position,
                  "the pattern of " + (like ? "like" : sign) + " must be a text");
  }
  std::vector<Expr> children;
  children.push_back(*std::move(left));
  children.push_back(*std::move(pattern));
  Expr expr = operation_of(like ? ExpressionKind::like : ExpressionKind::matches, position,
                           std::move(children));
  if (sign.ends_with('*')) expr.text = kIgnoreCase;
  return negation_of(std::move(expr), sign.starts_with('!'));
}

SqlResult<Expr> ExpressionParser::operation(const Json& members, unsigned depth) const {
  const std::string kind = members.value("kind", "");
  const std::size_t position = members.value("location", std::size_t{0});
  if (members.at("name").size() != 1) {
    return refuse(text_, position, "this operator is not supported");
  }
  const std::string sign = string_of(members.at("name").back());
  if (kind == "AEXPR_OP") {
    const bool regex = sign == "~" || sign == "!~" || sign == "~*" || sign == "!~*";
    if (regex && members.contains("lexpr")) return with_pattern(members, sign, depth);
    return binary(members, sign, depth);
  }
  if (kind == "AEXPR_IN" || kind == "AEXPR_BETWEEN" || kind == "AEXPR_NOT_BETWEEN") {
    return with_list(members, kind, depth);
  }
  if (kind == "AEXPR_LIKE") return with_pattern(members, sign, depth);
  return refuse(text_, position, "this form of a condition is not supported");
}

SqlResult<Expr> ExpressionParser::boolean(const Json& members, unsigned depth) const {
  const std::string kind = members.value("boolop", "");
  std::vector<Expr> children;
  for (const Json& argument : members.at("args")) {
    auto child = parse(argument, depth);
    if (!child) return child;
    children.push_back(*std::move(child));
  }
  const ExpressionKind op = kind == "AND_EXPR"  ? ExpressionKind::logical_and
                            : kind == "OR_EXPR" ? ExpressionKind::logical_or
                                                : ExpressionKind::logical_not;
  return operation_of(op, position_of(members, 0), std::move(children));
}

SqlResult<Expr> ExpressionParser::null_test(const Json& members, unsigned depth) const {
  auto argument = parse(members.at("arg"), depth);
  if (!argument) return argument;
  std::vector<Expr> children;
  children.push_back(*std::move(argument));
  const std::size_t position = members.value("location", std::size_t{0});
  return negation_of(operation_of(ExpressionKind::is_null, position, std::move(children)),
                     members.value("nulltesttype", "") == "IS_NOT_NULL");
}

SqlResult<Expr> ExpressionParser::parse(const Json& node, unsigned depth) const {
  if (++depth > kDepthMax) return refuse_at(node, "the expression is nested more than 200 deep");
  const auto [kind, members] = tree_node(node);
  if (kind == "ColumnRef") {
    if (is_star(node)) return refuse_at(node, "* stands for columns, not for a value");
    return column(*members);
  }
  if (kind == "A_Const") return constant(*members);
  if (kind == "A_Expr") return operation(*members, depth);
  if (kind == "BoolExpr") return boolean(*members, depth);
  if (kind == "NullTest") return null_test(*members, depth);
  if (kind == "FuncCall") return call(*members, depth);
  if (kind == "TypeCast") return cast(*members, depth);
  if (kind == "SubLink") return refuse_at(node, "queries inside queries are not supported");
  if (kind == "CaseExpr") return refuse_at(node, "case is not supported");
  if (kind == "ParamRef") return refuse_at(node, "parameters are not supported");
  return refuse_at(node, "this form of an expression is not supported");
}

}  // namespace espalier::sql

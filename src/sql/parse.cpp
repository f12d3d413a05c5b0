// SPDX-License-Identifier: Apache-2.0
// Statements out of PostgreSQL's trees.
#include <array>
#include <charconv>
#include <utility>

#include "sql/parse_expression.hpp"
#include "sql/parse_tree.hpp"
#include "sql/statement.hpp"

namespace espalier::sql {
namespace {

constexpr std::size_t kTextBytesMax = 64 * 1024;

struct Clause {
  std::string_view member;
  std::string_view reason;
};

/// What PostgreSQL has behind select and this grammar has not.
constexpr std::array kOtherClauses = {
    Clause{"havingClause", "having is not supported"},
    Clause{"sortClause", "order by is not supported"},
    Clause{"limitOffset", "offset is not supported"},
    Clause{"windowClause", "windows are not supported"},
    Clause{"withClause", "with is not supported"},
    Clause{"valuesLists", "values is not supported"},
    Clause{"intoClause", "into is not supported"},
    Clause{"lockingClause", "for update and for share are not supported"},
    Clause{"groupDistinct", "group by distinct is not supported"},
};

class StatementParser {
 public:
  explicit StatementParser(std::string_view text) { statement_.text = text; }

  SqlResult<Statement> run();

 private:
  SqlResult<void> select(const Json& members);
  SqlResult<void> clauses(const Json& members);
  SqlResult<void> from(const Json& members);
  SqlResult<void> items(const Json& members, const ExpressionParser& parser);
  SqlResult<void> rest(const Json& members, const ExpressionParser& parser);
  SqlResult<void> limit(const Json& members, const ExpressionParser& parser);

  [[nodiscard]] std::unexpected<SqlError> wrong(const Json& node, std::string reason) const {
    return refuse(statement_.text, position_of(node, 0), std::move(reason));
  }

  Statement statement_;
  std::string alias_;
};

SqlResult<void> StatementParser::clauses(const Json& members) {
  for (const Clause& clause : kOtherClauses) {
    const auto found = members.find(clause.member);
    if (found != members.end()) return wrong(*found, std::string(clause.reason));
  }
  if (members.value("op", "SETOP_NONE") != "SETOP_NONE") {
    return wrong(members, "union, intersect and except are not supported");
  }
  const std::string limit_option = members.value("limitOption", "LIMIT_OPTION_DEFAULT");
  if (limit_option == "LIMIT_OPTION_WITH_TIES") return wrong(members, "ties are not supported");
  const std::string* other =
      unlisted_member(members, {"distinctClause", "targetList", "fromClause", "whereClause",
                                "groupClause", "limitCount", "limitOption", "op"});
  if (other) return wrong(members.at(*other), *other + " is not supported");
  if (const auto distinct = members.find("distinctClause"); distinct != members.end()) {
    // Without `on`, the clause is a list of one node that is empty.
    const bool plain = distinct->size() == 1 && distinct->front().empty();
    if (!plain) return wrong(*distinct, "distinct on is not supported");
    statement_.distinct = true;
  }
  return {};
}

SqlResult<void> StatementParser::from(const Json& members) {
  const auto list = members.find("fromClause");
  if (list == members.end()) return wrong(members, "from is missing");
  if (list->size() != 1) return wrong(list->at(1), "there may be one table");
  const TreeNode range = tree_node(list->front());
  if (range.kind == "JoinExpr") return wrong(list->front(), "joins are not supported");
  if (range.kind != "RangeVar") return wrong(list->front(), "only a table can stand here");
  const std::string* other =
      unlisted_member(*range.members, {"relname", "inh", "relpersistence", "alias", "location"});
  if (other) return wrong(*range.members, "a table has one name");
  if (!range.members->contains("inh")) return wrong(*range.members, "only is not supported");
  statement_.table = range.members->value("relname", "");
  statement_.table_position = position_of(*range.members, 0);
  alias_ = statement_.table;
  if (const auto alias = range.members->find("alias"); alias != range.members->end()) {
    if (alias->contains("colnames")) return wrong(*alias, "columns cannot be renamed here");
    alias_ = alias->value("aliasname", "");
  }
  return {};
}

SqlResult<void> StatementParser::items(const Json& members, const ExpressionParser& parser) {
  const auto list = members.find("targetList");
  if (list == members.end()) return wrong(members, "select needs an item");
  for (const Json& node : *list) {
    const TreeNode target = tree_node(node);
    if (target.kind != "ResTarget" || target.members->contains("indirection")) {
      return wrong(node, "this item is not supported");
    }
    SelectItem item;
    const Json& value = target.members->at("val");
    item.name = target.members->value("name", "");
    item.star = parser.is_star(value);
    item.expr.position = position_of(node, 0);
    if (!item.star) {
      auto expr = parser.parse(value);
      if (!expr) return std::unexpected(std::move(expr.error()));
      item.expr = *std::move(expr);
    }
    statement_.items.push_back(std::move(item));
  }
  return {};
}

SqlResult<void> StatementParser::limit(const Json& members, const ExpressionParser& parser) {
  const auto count = members.find("limitCount");
  if (count == members.end()) return {};
  auto expr = parser.parse(*count);
  if (!expr) return std::unexpected(std::move(expr.error()));
  if (expr->kind == ExprKind::null) return {};  // limit all
  std::uint64_t rows = 0;
  const char* const end = expr->text.data() + expr->text.size();
  const auto [stop, error] = std::from_chars(expr->text.data(), end, rows);
  if (expr->kind != ExprKind::integer || error != std::errc{} || stop != end) {
    return refuse(statement_.text, expr->position, "limit takes a number of rows");
  }
  statement_.limit = rows;
  return {};
}

SqlResult<void> StatementParser::rest(const Json& members, const ExpressionParser& parser) {
  if (const auto where = members.find("whereClause"); where != members.end()) {
    auto expr = parser.parse(*where);
    if (!expr) return std::unexpected(std::move(expr.error()));
    if (expr->has_aggregate()) return wrong(*where, "aggregates cannot stand behind where");
    statement_.where = *std::move(expr);
  }
  if (const auto keys = members.find("groupClause"); keys != members.end()) {
    for (const Json& key : *keys) {
      if (tree_node(key).kind == "GroupingSet")
        return wrong(key, "grouping sets are not supported");
      auto expr = parser.parse(key);
      if (!expr) return std::unexpected(std::move(expr.error()));
      if (expr->kind != ExprKind::column) {
        return refuse(statement_.text, expr->position, "group by takes columns");
      }
      statement_.group_by.push_back(*std::move(expr));
    }
  }
  return limit(members, parser);
}

SqlResult<void> StatementParser::select(const Json& members) {
  SqlResult<void> done = clauses(members);
  if (done) done = from(members);
  if (!done) return done;
  const ExpressionParser parser(statement_.text, statement_.table, alias_);
  done = items(members, parser);
  if (done) done = rest(members, parser);
  return done;
}

SqlResult<Statement> StatementParser::run() {
  const std::string& text = statement_.text;
  if (text.size() > kTextBytesMax) return refuse(text, 0, "the query has more than 64 KiB");
  const auto tree = parse_tree(text);
  if (!tree) return std::unexpected(tree.error());
  const auto statements = tree->find("stmts");
  if (statements == tree->end() || statements->empty()) return refuse(text, 0, "there is no query");
  if (statements->size() > 1) {
    std::size_t second = statements->at(1).value("stmt_location", std::size_t{0});
    while (second < text.size() && (text[second] == ' ' || text[second] == '\n')) ++second;
    return refuse(text, second, "there may be one query");
  }
  const TreeNode root = tree_node(statements->front().at("stmt"));
  if (root.kind != "SelectStmt") return refuse(text, 0, "only select is supported");
  if (auto done = select(*root.members); !done) return std::unexpected(std::move(done.error()));
  return std::move(statement_);
}

}  // namespace

SqlResult<Statement> parse(std::string_view text) {
  try {
    return StatementParser(text).run();
  } catch (const Json::exception&) {
    // A tree that lacks a member that all of its kind have: no form that is known here.
    return refuse(text, 0, "this form of a query is not supported");
  }
}

}  // namespace espalier::sql

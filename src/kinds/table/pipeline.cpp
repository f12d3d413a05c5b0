// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/pipeline.hpp"

#include <utility>

#include "base/assert.hpp"
#include "kinds/table/pipeline_types.hpp"

namespace espalier::table {
namespace {

using wire::Aggregate;
using wire::ExpressionKind;
using wire::OperatorHeader;
using wire::OperatorKind;
using wire::ValueKind;

unsigned rank(OperatorKind kind) { return static_cast<unsigned>(kind); }

Pipeline of_schema(const Schema& schema) {
  return {.schema = schema,
          .constants = {},
          .nodes = {},
          .users = {},
          .filters = {},
          .items = {},
          .limit = {},
          .result = schema,
          .regexes = {}};
}

class Check {
 public:
  Check(const PipelineMessage& message, const Schema& schema)
      : message_(message),
        constants_(read_constants(message)),
        types_(schema, constants_),
        pipeline_(of_schema(schema)) {}

  PipelineResult<Pipeline> run();

 private:
  PipelineResult<void> order();
  PipelineResult<void> expressions();
  PipelineResult<void> operators();
  PipelineResult<void> take(const OperatorHeader& header);
  PipelineResult<void> take_items(const OperatorHeader& header);
  PipelineResult<void> take_item(const wire::PipelineItem& item, bool key);
  void take_all_columns();
  PipelineResult<void> make_result();
  void append_columns(Item& item, std::vector<ColumnSpec>& columns);

  [[nodiscard]] std::unexpected<PipelineError> wrong(std::string reason) const {
    const auto kind = static_cast<OperatorKind>(message_.operators[at_].kind);
    return std::unexpected(PipelineError{static_cast<std::uint32_t>(at_),
                                         std::string(name_of(kind)), std::move(reason)});
  }
  [[nodiscard]] static std::unexpected<PipelineError> wrong_whole(std::string reason) {
    return std::unexpected(PipelineError{PipelineError::kNoOperator, {}, std::move(reason)});
  }

  const PipelineMessage& message_;
  std::vector<Constant> constants_;
  TypeCheck types_;
  Pipeline pipeline_;
  std::size_t at_ = 0;  // the operator being checked
};

PipelineResult<void> Check::order() {
  const auto& operators = message_.operators;
  bool scans = false;
  for (at_ = 0; at_ < operators.size(); ++at_) {
    const auto kind = static_cast<OperatorKind>(operators[at_].kind);
    if (kind == OperatorKind::regular_expression) {
      return wrong("it stands in the condition of a filter, not by itself");
    }
    scans = scans || kind == OperatorKind::scan;
    const bool decrypts = kind == OperatorKind::decrypt;
    if (!scans && !decrypts) return wrong("it stands before the scan");
    if (at_ == 0) continue;
    const auto last = static_cast<OperatorKind>(operators[at_ - 1].kind);
    const bool repeats = rank(kind) == rank(last) && kind != OperatorKind::filter;
    if (rank(kind) < rank(last) || repeats) {
      return wrong("it cannot stand behind " + std::string(name_of(last)));
    }
  }
  if (!scans) return wrong_whole("the pipeline has no scan");
  if (static_cast<OperatorKind>(operators.back().kind) != OperatorKind::pack) {
    return wrong_whole("the pipeline does not end with pack");
  }
  return {};
}

PipelineResult<void> Check::take(const OperatorHeader& header) {
  const std::uint64_t argument = header.argument;
  switch (static_cast<OperatorKind>(header.kind)) {
    case OperatorKind::scan:
      if (argument > static_cast<std::uint64_t>(wire::Addressing::smart)) {
        return wrong("there is no addressing " + std::to_string(argument));
      }
      pipeline_.addressing = static_cast<wire::Addressing>(argument);
      return {};
    case OperatorKind::filter: {
      const auto node = static_cast<std::uint16_t>(argument);
      const ValueKind kind = pipeline_.nodes[node].type.kind;
      if (kind != ValueKind::boolean) {
        return wrong("its condition is " + std::string(name_of(kind)) + ", not boolean");
      }
      pipeline_.filters.push_back({static_cast<std::uint32_t>(at_), node});
      return {};
    }
    case OperatorKind::group_by:
      if (!pipeline_.items.empty()) return wrong("it takes the table's rows, not projected ones");
      if (pipeline_.distinct) return wrong("it cannot stand behind distinct");
      if (argument > header.items) return wrong("it has more keys than items");
      pipeline_.grouped = true;
      pipeline_.keys = static_cast<std::uint16_t>(argument);
      return take_items(header);
    case OperatorKind::project:
      if (argument != 0) return wrong("its argument is not 0");
      return take_items(header);
    case OperatorKind::limit: pipeline_.limit = argument; return {};
    case OperatorKind::distinct:
    case OperatorKind::decrypt:
    case OperatorKind::encrypt:
    case OperatorKind::pack:
      if (argument != 0) return wrong("its argument is not 0");
      pipeline_.distinct |= header.kind == static_cast<std::uint16_t>(OperatorKind::distinct);
      pipeline_.decrypt |= header.kind == static_cast<std::uint16_t>(OperatorKind::decrypt);
      pipeline_.encrypt |= header.kind == static_cast<std::uint16_t>(OperatorKind::encrypt);
      return {};
    default: return wrong("this version cannot do it");
  }
}

PipelineResult<void> Check::take_items(const OperatorHeader& header) {
  if (header.items == 0) return wrong("it has no items");
  pipeline_.items_operator = static_cast<std::uint32_t>(at_);
  for (std::size_t i = 0; i < header.items; ++i) {
    const bool key = !pipeline_.grouped || i < pipeline_.keys;
    if (auto taken = take_item(message_.items[header.first_item + i], key); !taken) return taken;
  }
  return {};
}

PipelineResult<void> Check::take_item(const wire::PipelineItem& from, bool key) {
  Item item{static_cast<Aggregate>(from.aggregate), from.node, {}};
  const std::string text = "item " + std::to_string(pipeline_.items.size());
  if (key && item.aggregate != Aggregate::none) {
    return wrong(text + " is an aggregate among " + (pipeline_.grouped ? "keys" : "values"));
  }
  if (!key && item.aggregate == Aggregate::none) {
    return wrong(text + " is neither a key nor an aggregate");
  }
  if (item.node != wire::kNoExpression) item.argument = pipeline_.nodes[item.node].type;
  const bool adds = item.aggregate == Aggregate::sum || item.aggregate == Aggregate::avg;
  if (adds && !is_numeric(item.argument.kind)) {
    return wrong(text + ": " + std::string(name_of(item.aggregate)) + " takes numbers, not " +
                 std::string(name_of(item.argument.kind)));
  }
  pipeline_.items.push_back(item);
  return {};
}

void Check::take_all_columns() {
  for (std::size_t i = 0; i < pipeline_.schema.columns().size(); ++i) {
    const ValueType type = value_type(pipeline_.schema.column(i));
    const auto node = static_cast<std::uint16_t>(pipeline_.nodes.size());
    pipeline_.nodes.push_back({ExpressionKind::column, static_cast<std::uint16_t>(i), 0, 0, type});
    pipeline_.items.push_back({Aggregate::none, node, type});
  }
}

void Check::append_columns(Item& item, std::vector<ColumnSpec>& columns) {
  const std::string name = "r" + std::to_string(&item - pipeline_.items.data());
  const Type count{ColumnType::i64, 0, 0, 0};
  item.first_column = static_cast<std::uint16_t>(columns.size());
  switch (item.aggregate) {
    case Aggregate::none:
      columns.push_back({name, item.argument.stored, item.argument.nullable});
      break;
    case Aggregate::count_rows:
    case Aggregate::count: columns.push_back({name, count, false}); break;
    case Aggregate::min:
    case Aggregate::max: columns.push_back({name, item.argument.stored, true}); break;
    case Aggregate::sum:
    case Aggregate::avg:
      if (item.argument.kind == ValueKind::real) {
        columns.push_back({name, {ColumnType::f64, 0, 0, 0}, true});
      } else {
        columns.push_back({name + "_low", count, true});
        columns.push_back({name + "_high", count, true});
      }
      if (item.aggregate == Aggregate::avg) columns.push_back({name + "_count", count, false});
      break;
  }
  item.columns = static_cast<std::uint16_t>(columns.size() - item.first_column);
}

PipelineResult<void> Check::make_result() {
  std::vector<ColumnSpec> columns;
  for (Item& item : pipeline_.items) append_columns(item, columns);
  auto result = Schema::make(columns);
  at_ = pipeline_.items_operator;
  if (!result) return wrong("the result cannot be a row: " + result.error().reason);
  pipeline_.result = *std::move(result);
  return {};
}

PipelineResult<void> Check::expressions() {
  // Errors in an expression name the operator that uses it, so find each node's user first: roots
  // by operator, then each child by its parent.
  auto& user = pipeline_.users;
  user.assign(message_.nodes.size(), 0);
  for (std::uint32_t i = 0; i < message_.operators.size(); ++i) {
    const OperatorHeader& header = message_.operators[i];
    if (header.kind == static_cast<std::uint16_t>(OperatorKind::filter)) user[header.argument] = i;
    for (std::size_t n = 0; n < header.items; ++n) {
      const std::uint16_t node = message_.items[header.first_item + n].node;
      if (node != wire::kNoExpression) user[node] = i;
    }
  }
  for (std::size_t i = message_.nodes.size(); i-- > 0;) {
    const wire::ExpressionNode& node = message_.nodes[i];
    const unsigned children = children_of(static_cast<ExpressionKind>(node.kind));
    const std::uint16_t operands[] = {node.a, node.b, node.c};
    for (unsigned n = 0; n < children; ++n) user[operands[n]] = user[i];
  }
  for (std::size_t i = 0; i < message_.nodes.size(); ++i) {
    auto node = types_.check(message_.nodes[i], pipeline_.nodes);
    at_ = user[i];
    if (!node) return wrong(std::move(node.error()));
    pipeline_.nodes.push_back(*node);
  }
  return {};
}

PipelineResult<void> Check::operators() {
  for (at_ = 0; at_ < message_.operators.size(); ++at_) {
    if (auto taken = take(message_.operators[at_]); !taken) return taken;
  }
  return {};
}

PipelineResult<Pipeline> Check::run() {
  PipelineResult<void> checked = order();
  if (checked) checked = expressions();
  if (checked) compare_chars_without_blanks(pipeline_.nodes, constants_);
  if (checked) checked = operators();
  if (checked && pipeline_.items.empty()) take_all_columns();
  if (checked) checked = make_result();
  if (!checked) return std::unexpected(std::move(checked.error()));
  pipeline_.constants = std::move(constants_);
  return std::move(pipeline_);
}

}  // namespace

PipelineResult<Pipeline> check_pipeline(const PipelineMessage& message, const Schema& schema) {
  return Check(message, schema).run();
}

PipelineResult<Pipeline> check_pipeline(std::span<const std::byte> bytes, const Schema& schema) {
  auto message = decode_pipeline(bytes);
  if (!message) return std::unexpected(std::move(message.error()));
  return check_pipeline(*message, schema);
}

}  // namespace espalier::table

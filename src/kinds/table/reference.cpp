// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/reference.hpp"

#include <map>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "kinds/table/like.hpp"

namespace espalier::table {
namespace {

using wire::Aggregate;
using wire::ExpressionKind;
using wire::ValueKind;

Value truth(bool value) { return Value::of(value ? 1 : 0); }

/// What the aggregates of one group have seen of one item.
struct State {
  std::uint64_t count = 0;  // rows, or values that are not null
  Wide sum = 0;
  double real_sum = 0;
  Value extreme;
};

struct Group {
  std::vector<Value> keys;
  std::vector<State> states;
};

class Reference {
 public:
  explicit Reference(const Pipeline& pipeline) : pipeline_(pipeline) {}

  std::expected<ReferenceResult, RunError> run(RowSource& source);

 private:
  std::expected<void, RunError> take(const std::byte* row, std::uint64_t number);
  std::expected<void, RunError> add_to_group(std::vector<Value> values);
  std::expected<Value, RunError> value(std::uint16_t node, std::uint32_t operator_index,
                                       const std::byte* row, std::uint64_t number) const;
  [[nodiscard]] bool is_full() const {
    if (!pipeline_.limit) return false;
    // Groups grow until the last row; a limit of none needs none.
    return pipeline_.grouped ? *pipeline_.limit == 0 : result_.count >= *pipeline_.limit;
  }
  void write_row(const std::vector<Value>& columns);
  void write_group(const Group& group);
  std::string key_of(const std::vector<Value>& values) const;

  const Pipeline& pipeline_;
  std::map<std::string, std::size_t> seen_;  // keys, and their groups' numbers
  std::vector<Group> groups_;
  ReferenceResult result_;
};

/// The smallest and greatest results of arithmetic.
bool fits(Wide number, ValueKind kind) {
  if (kind == ValueKind::decimal) {
    const Wide limit = power_of_ten(wire::kDecimalDigitsMax);
    return -limit < number && number < limit;
  }
  return number == Wide{static_cast<std::int64_t>(number)};
}

std::expected<Value, std::uint16_t> arithmetic(const Pipeline& pipeline, std::uint16_t index,
                                               const Value& a, const Value& b) {
  const Node& node = pipeline.nodes[index];
  const ValueType& a_type = pipeline.nodes[node.a].type;
  const ValueType& b_type = pipeline.nodes[node.b].type;
  if (a.null || b.null) return Value{};
  if (node.type.kind == ValueKind::real) {
    const double left = as_real(a, a_type);
    const double right = as_real(b, b_type);
    if (node.kind == ExpressionKind::add) return Value::of_real(left + right);
    if (node.kind == ExpressionKind::subtract) return Value::of_real(left - right);
    return Value::of_real(left * right);
  }
  // Products of 64 bits by 64 bits, and 64 bits times 10^18, fit 128.
  Wide number = 0;
  if (node.kind == ExpressionKind::multiply) {
    number = a.number * b.number;
  } else {
    const Wide left = a.number * power_of_ten(unsigned{node.type.scale} - a_type.scale);
    const Wide right = b.number * power_of_ten(unsigned{node.type.scale} - b_type.scale);
    number = node.kind == ExpressionKind::add ? left + right : left - right;
  }
  if (!fits(number, node.type.kind)) return std::unexpected(index);
  return Value::of(number);
}

Value comparison(ExpressionKind kind, int order) {
  switch (kind) {
    case ExpressionKind::equal: return truth(order == 0);
    case ExpressionKind::not_equal: return truth(order != 0);
    case ExpressionKind::less: return truth(order < 0);
    case ExpressionKind::less_equal: return truth(order <= 0);
    case ExpressionKind::greater: return truth(order > 0);
    default: return truth(order >= 0);
  }
}

bool is_true(const Value& value) { return !value.null && value.number != 0; }
bool is_false(const Value& value) { return !value.null && value.number == 0; }

Value conjunction(const Value& a, const Value& b) {
  if (is_false(a) || is_false(b)) return truth(false);
  if (a.null || b.null) return {};
  return truth(true);
}

Value disjunction(const Value& a, const Value& b) {
  if (is_true(a) || is_true(b)) return truth(true);
  if (a.null || b.null) return {};
  return truth(false);
}

Value one_of(const Pipeline& pipeline, const Node& node, const Value& a) {
  if (a.null) return {};
  bool null = false;
  for (std::size_t i = node.b; i < std::size_t{node.b} + node.c; ++i) {
    const Constant& constant = pipeline.constants[i];
    if (constant.null) {
      null = true;
      continue;
    }
    const Value value{false, constant.number, constant.real, constant.text};
    if (compare_values(a, pipeline.nodes[node.a].type, value, constant.type) == 0) {
      return truth(true);
    }
  }
  return null ? Value{} : truth(false);
}

/// Nodes with one child or more; the children's values are in `values`.
std::expected<Value, std::uint16_t> combine(const Pipeline& pipeline, std::uint16_t index,
                                            const Value (&values)[3]) {
  const Node& node = pipeline.nodes[index];
  const Value& a = values[0];
  const Value& b = values[1];
  const auto compare = [&](ExpressionKind kind, const Value& left, std::uint16_t left_node,
                           const Value& right, std::uint16_t right_node) -> Value {
    if (left.null || right.null) return {};
    return comparison(kind, compare_values(left, pipeline.nodes[left_node].type, right,
                                           pipeline.nodes[right_node].type));
  };
  switch (node.kind) {
    case ExpressionKind::add:
    case ExpressionKind::subtract:
    case ExpressionKind::multiply: return arithmetic(pipeline, index, a, b);
    case ExpressionKind::logical_and: return conjunction(a, b);
    case ExpressionKind::logical_or: return disjunction(a, b);
    case ExpressionKind::logical_not: return a.null ? Value{} : truth(a.number == 0);
    case ExpressionKind::is_null: return truth(a.null);
    case ExpressionKind::between:
      return conjunction(compare(ExpressionKind::greater_equal, a, node.a, b, node.b),
                         compare(ExpressionKind::less_equal, a, node.a, values[2], node.c));
    case ExpressionKind::in: return one_of(pipeline, node, a);
    case ExpressionKind::like: {
      const Constant& pattern = pipeline.constants[node.b];
      if (a.null || pattern.null) return Value{};
      return truth(is_like(a.text, pattern.text));
    }
    case ExpressionKind::matches: {
      if (a.null || pipeline.constants[node.b].null) return Value{};
      const std::string_view text = a.text;
      std::uint8_t found = 0;
      pipeline.regexes[index]->search({&text, 1}, 0, &found);
      return truth(found != 0);
    }
    default: return compare(node.kind, a, node.a, b, node.b);
  }
}

std::expected<Value, RunError> Reference::value(std::uint16_t node, std::uint32_t operator_index,
                                                const std::byte* row, std::uint64_t number) const {
  auto value = evaluate(pipeline_, node, row);
  if (value) return *std::move(value);
  return std::unexpected(RunError{
      {}, operator_index, number, expression_text(pipeline_, value.error()) + " overflows"});
}

/// Equal for values that are one group: null apart from all others, reals as the one they equal.
std::string Reference::key_of(const std::vector<Value>& values) const {
  std::string key;
  const std::size_t keys = pipeline_.grouped ? pipeline_.keys : values.size();
  for (std::size_t i = 0; i < keys; ++i) {
    const Value& value = values[i];
    std::string part = "null";
    if (!value.null) {
      switch (pipeline_.items[i].argument.kind) {
        case ValueKind::text: part = "=" + value.text; break;
        case ValueKind::real: {
          const double real = canonical_real(value.real);
          part = "=" + std::string(reinterpret_cast<const char*>(&real), sizeof real);
          break;
        }
        default: part = "=" + to_text(value.number); break;
      }
    }
    key += std::to_string(part.size()) + ":" + part;
  }
  return key;
}

std::expected<void, RunError> Reference::take(const std::byte* row, std::uint64_t number) {
  for (const Filter& filter : pipeline_.filters) {
    const auto passes = value(filter.node, filter.operator_index, row, number);
    if (!passes) return std::unexpected(passes.error());
    if (!is_true(*passes)) return {};
  }
  std::vector<Value> values;
  for (const Item& item : pipeline_.items) {
    if (item.node == wire::kNoExpression) {
      values.emplace_back();
      continue;
    }
    auto one = value(item.node, pipeline_.items_operator, row, number);
    if (!one) return std::unexpected(one.error());
    values.push_back(*std::move(one));
  }
  if (pipeline_.grouped) return add_to_group(std::move(values));
  if (pipeline_.distinct) {
    if (!seen_.emplace(key_of(values), 0).second) return {};
    for (Value& one : values) one.real = canonical_real(one.real);
  }
  write_row(values);
  return {};
}

std::expected<void, RunError> Reference::add_to_group(std::vector<Value> values) {
  const auto [at, is_new] = seen_.emplace(key_of(values), groups_.size());
  if (is_new) {
    Group group{{values.begin(), values.begin() + pipeline_.keys}, {}};
    for (Value& key : group.keys) key.real = canonical_real(key.real);
    group.states.resize(values.size());
    groups_.push_back(std::move(group));
  }
  for (std::size_t i = pipeline_.keys; i < values.size(); ++i) {
    const Item& item = pipeline_.items[i];
    State& state = groups_[at->second].states[i];
    Value& value = values[i];
    if (item.aggregate == Aggregate::count_rows) {
      ++state.count;
      continue;
    }
    if (value.null) continue;
    ++state.count;
    state.sum += value.number;
    state.real_sum += value.real;
    if (item.aggregate != Aggregate::min && item.aggregate != Aggregate::max) continue;
    value.real = canonical_real(value.real);
    if (!state.extreme.null) {
      const int order = compare_values(value, item.argument, state.extreme, item.argument);
      if (item.aggregate == Aggregate::min ? order >= 0 : order <= 0) continue;
    }
    state.extreme = std::move(value);
  }
  return {};
}

void Reference::write_row(const std::vector<Value>& columns) {
  const std::size_t begin = result_.rows.size();
  result_.rows.resize(begin + pipeline_.result.row_bytes());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Value value = columns[i];
    value.real = one_nan(value.real);
    write_value(pipeline_.result.column(i), value, result_.rows.data() + begin);
  }
  ++result_.count;
}

void Reference::write_group(const Group& group) {
  std::vector<Value> columns = group.keys;
  for (std::size_t i = pipeline_.keys; i < pipeline_.items.size(); ++i) {
    const Item& item = pipeline_.items[i];
    const State& state = group.states[i];
    const Value count = Value::of(static_cast<std::int64_t>(state.count));
    switch (item.aggregate) {
      case Aggregate::none: break;
      case Aggregate::count_rows:
      case Aggregate::count: columns.push_back(count); break;
      case Aggregate::min:
      case Aggregate::max: columns.push_back(state.extreme); break;
      case Aggregate::sum:
      case Aggregate::avg:
        if (item.argument.kind == ValueKind::real) {
          columns.push_back(state.count == 0 ? Value{} : Value::of_real(state.real_sum));
        } else {
          columns.push_back(state.count == 0 ? Value{} : Value::of(low_half(state.sum)));
          columns.push_back(state.count == 0 ? Value{} : Value::of(high_half(state.sum)));
        }
        if (item.aggregate == Aggregate::avg) columns.push_back(count);
        break;
    }
  }
  write_row(columns);
}

std::expected<ReferenceResult, RunError> Reference::run(RowSource& source) {
  // Without keys there is one group, even of no rows.
  if (pipeline_.grouped && pipeline_.keys == 0) {
    seen_.emplace("", 0);
    groups_.push_back({{}, std::vector<State>(pipeline_.items.size())});
  }
  while (!is_full()) {
    const Result<RowSpan> span = source.next();
    if (!span) return std::unexpected(RunError{span.error(), 0, 0, {}});
    if (span->count == 0) break;
    for (std::size_t i = 0; i < span->count && !is_full(); ++i) {
      auto taken = take(span->rows + i * std::size_t{span->row_bytes}, span->first_row + i);
      if (!taken) return std::unexpected(std::move(taken.error()));
    }
  }
  for (const Group& group : groups_) {
    if (pipeline_.limit && result_.count >= *pipeline_.limit) break;
    write_group(group);
  }
  return std::move(result_);
}

}  // namespace

std::expected<Value, std::uint16_t> evaluate(const Pipeline& pipeline, std::uint16_t index,
                                             const std::byte* row) {
  const Node& node = pipeline.nodes[index];
  if (node.kind == ExpressionKind::column) return read_value(pipeline.schema.column(node.a), row);
  if (node.kind == ExpressionKind::constant) {
    const Constant& constant = pipeline.constants[node.a];
    return Value{constant.null, constant.number, constant.real, constant.text};
  }
  const std::uint16_t children[] = {node.a, node.b, node.c};
  Value values[3];
  for (unsigned i = 0; i < children_of(node.kind); ++i) {
    auto value = evaluate(pipeline, children[i], row);
    if (!value) return value;
    values[i] = *std::move(value);
  }
  return combine(pipeline, index, values);
}

std::expected<ReferenceResult, RunError> run_reference(const Pipeline& pipeline,
                                                       RowSource& source) {
  return Reference(pipeline).run(source);
}

}  // namespace espalier::table

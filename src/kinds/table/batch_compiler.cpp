// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/batch_compiler.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "kinds/table/pipeline_types.hpp"
#include "kinds/table/value.hpp"

namespace espalier::table {
namespace {

using wire::Aggregate;
using wire::ExpressionKind;
using wire::ValueKind;

/// A number times a power of ten, or divided by one, if both are exact.
std::optional<std::int64_t> rescale(std::int64_t number, unsigned from, unsigned to) {
  if (to >= from) {
    std::int64_t scaled = 0;
    if (__builtin_mul_overflow(number, power_of_ten(to - from), &scaled)) return std::nullopt;
    return scaled;
  }
  const std::int64_t divisor = power_of_ten(from - to);
  if (number % divisor != 0) return std::nullopt;
  return number / divisor;
}

double real_of(const Constant& constant) {
  return table::as_real(Value{false, constant.number, constant.real, {}}, constant.type);
}

}  // namespace

std::uint16_t BatchCompiler::new_register() {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint16_t>(program_.registers_++));
  }
  const std::uint16_t reg = free_.back();
  free_.pop_back();
  return reg;
}

Instruction& BatchCompiler::emit(Kernel kernel, std::uint16_t node, const ValueType& type) {
  Instruction instruction;
  instruction.kernel = kernel;
  instruction.node = node;
  instruction.nullable = type.nullable;
  instruction.to = new_register();
  stage_->code.push_back(instruction);
  return stage_->code.back();
}

void BatchCompiler::release(const Operand& value) {
  if (value.temporary) free_.push_back(value.reg);
}

void BatchCompiler::take(Instruction& instruction, const Operand& a, const Operand* b) {
  instruction.a = a.reg;
  instruction.a_nullable = a.type.nullable;
  release(a);
  if (!b) return;
  instruction.b = b->reg;
  instruction.b_nullable = b->type.nullable;
  release(*b);
}

BatchCompiler::Operand BatchCompiler::column(std::uint16_t node) {
  const Node& of = node_of(node);
  auto& loaded = columns_[of.a];
  if (!loaded) {
    const Column& column = program_.pipeline_.schema.column(of.a);
    Instruction& load = emit(load_kernel(column.type.kind), node, of.type);
    load.column = &column;
    loaded = load.to;
  }
  return {*loaded, of.type, false, nullptr};
}

BatchCompiler::Operand BatchCompiler::constant(const Constant& value) {
  // Never one that was used before: it is filled once, when a run begins.
  const auto reg = static_cast<std::uint16_t>(program_.registers_++);
  program_.constants_.emplace_back(reg, &value);
  return {reg, value.type, false, &value};
}

BatchCompiler::Operand BatchCompiler::as_real(std::uint16_t node, const Operand& value) {
  if (value.type.kind == ValueKind::real) return value;
  const ValueType type = computed_type(ValueKind::real, 0, value.type.nullable);
  if (value.constant) {
    Constant& real = program_.own_constants_.emplace_back();
    real.type = type;
    real.null = value.constant->null;
    real.real = real_of(*value.constant);
    return constant(real);
  }
  Instruction& convert = emit(to_real_kernel(), node, type);
  convert.a_factor = power_of_ten(value.type.scale);
  take(convert, value, nullptr);
  return temporary(convert, type);
}

std::optional<BatchCompiler::Operand> BatchCompiler::rescaled(const Operand& value,
                                                              unsigned scale) {
  if (!value.constant) return std::nullopt;
  const auto number = rescale(value.constant->number, value.type.scale, scale);
  if (!number) return std::nullopt;
  Constant& decimal = program_.own_constants_.emplace_back(*value.constant);
  decimal.type =
      computed_type(ValueKind::decimal, static_cast<std::uint8_t>(scale), value.type.nullable);
  decimal.number = *number;
  return constant(decimal);
}

/// Brings a constant to the other's scale, where that is exact.
void BatchCompiler::align(Operand& a, Operand& b) {
  if (a.type.scale == b.type.scale) return;
  if (const auto constant = rescaled(b, a.type.scale)) {
    b = *constant;
  } else if (const auto other = rescaled(a, b.type.scale)) {
    a = *other;
  }
}

BatchCompiler::Operand BatchCompiler::arithmetic(std::uint16_t node) {
  const Node& of = node_of(node);
  Operand a = compile(of.a);
  Operand b = compile(of.b);
  const ValueKind kind = of.type.kind;
  bool aligned = true;
  if (kind == ValueKind::real) {
    a = as_real(node, a);
    b = as_real(node, b);
  } else if (of.kind != ExpressionKind::multiply) {
    // A constant of the smaller scale takes the greater one, which is the result's.
    if (a.type.scale < of.type.scale) a = rescaled(a, of.type.scale).value_or(a);
    if (b.type.scale < of.type.scale) b = rescaled(b, of.type.scale).value_or(b);
    aligned = a.type.scale == b.type.scale;
  }
  Instruction& instruction = emit(arithmetic_kernel(of.kind, kind, aligned), node, of.type);
  if (!aligned) {
    instruction.a_factor = power_of_ten(unsigned{of.type.scale} - a.type.scale);
    instruction.b_factor = power_of_ten(unsigned{of.type.scale} - b.type.scale);
  }
  take(instruction, a, &b);
  return temporary(instruction, of.type);
}

BatchCompiler::Operand BatchCompiler::comparison(std::uint16_t node, ExpressionKind op,
                                                 const Operand& left, const Operand& right) {
  Operand a = left;
  Operand b = right;
  ValueKind kind = a.type.kind;
  bool aligned = true;
  if (is_numeric(kind)) {
    if (kind == ValueKind::real || b.type.kind == ValueKind::real) {
      kind = ValueKind::real;
      a = as_real(node, a);
      b = as_real(node, b);
    } else {
      align(a, b);
      aligned = a.type.scale == b.type.scale;
    }
  }
  const ValueType type = computed_type(ValueKind::boolean, 0, a.type.nullable || b.type.nullable);
  Instruction& instruction = emit(compare_kernel(op, kind, aligned), node, type);
  if (!aligned) {
    const unsigned scale = std::max(a.type.scale, b.type.scale);
    instruction.a_factor = power_of_ten(scale - a.type.scale);
    instruction.b_factor = power_of_ten(scale - b.type.scale);
  }
  take(instruction, a, &b);
  return temporary(instruction, type);
}

BatchCompiler::Operand BatchCompiler::logic(std::uint16_t node, ExpressionKind op, const Operand& a,
                                            const Operand* b) {
  const bool nullable =
      op != ExpressionKind::is_null && (a.type.nullable || (b && b->type.nullable));
  const ValueType type = computed_type(ValueKind::boolean, 0, nullable);
  Instruction& instruction = emit(logic_kernel(op), node, type);
  take(instruction, a, b);
  return temporary(instruction, type);
}

BatchCompiler::Operand BatchCompiler::between(std::uint16_t node) {
  const Node& of = node_of(node);
  const Operand a = compile(of.a);
  const Operand low = compile(of.b);
  const Operand high = compile(of.c);
  // Used twice: it is given back after the second use.
  Operand kept = a;
  kept.temporary = false;
  const Operand above = comparison(node, ExpressionKind::greater_equal, kept, low);
  const Operand below = comparison(node, ExpressionKind::less_equal, a, high);
  return logic(node, ExpressionKind::logical_and, above, &below);
}

BatchCompiler::Operand BatchCompiler::in(std::uint16_t node) {
  const Node& of = node_of(node);
  const Operand a = compile(of.a);
  Candidates& candidates = program_.candidates_.emplace_back();
  for (std::size_t i = of.b; i < std::size_t{of.b} + of.c; ++i) {
    const Constant& constant = program_.pipeline_.constants[i];
    if (constant.null) {
      candidates.null = true;
    } else if (a.type.kind == ValueKind::text) {
      candidates.texts.push_back(constant.text);
    } else if (a.type.kind == ValueKind::real || constant.type.kind == ValueKind::real) {
      candidates.reals.push_back(real_of(constant));
    } else if (const auto number = rescale(constant.number, constant.type.scale, a.type.scale)) {
      candidates.numbers.push_back(*number);
    }
  }
  std::ranges::sort(candidates.numbers);
  std::ranges::sort(candidates.texts);
  Instruction& instruction = emit(in_kernel(a.type.kind), node, of.type);
  instruction.candidates = &candidates;
  instruction.a_factor = power_of_ten(a.type.scale);
  take(instruction, a, nullptr);
  return temporary(instruction, of.type);
}

BatchCompiler::Operand BatchCompiler::like(std::uint16_t node) {
  const Node& of = node_of(node);
  const Operand a = compile(of.a);
  const Constant& pattern = program_.pipeline_.constants[of.b];
  if (pattern.null) {
    Constant& unknown = program_.own_constants_.emplace_back();
    unknown.type = of.type;
    unknown.null = true;
    return constant(unknown);
  }
  Instruction& instruction = emit(like_kernel(), node, of.type);
  instruction.pattern = &program_.patterns_.emplace_back(pattern.text);
  take(instruction, a, nullptr);
  return temporary(instruction, of.type);
}

BatchCompiler::Operand BatchCompiler::compile(std::uint16_t node) {
  const Node& of = node_of(node);
  switch (of.kind) {
    case ExpressionKind::column: return column(node);
    case ExpressionKind::constant: return constant(program_.pipeline_.constants[of.a]);
    case ExpressionKind::add:
    case ExpressionKind::subtract:
    case ExpressionKind::multiply: return arithmetic(node);
    case ExpressionKind::logical_not:
    case ExpressionKind::is_null: return logic(node, of.kind, compile(of.a), nullptr);
    case ExpressionKind::between: return between(node);
    case ExpressionKind::in: return in(node);
    case ExpressionKind::like: return like(node);
    case ExpressionKind::matches: return matches(node);
    default: break;
  }
  const Operand a = compile(of.a);
  const Operand b = compile(of.b);
  if (of.kind == ExpressionKind::logical_and || of.kind == ExpressionKind::logical_or) {
    return logic(node, of.kind, a, &b);
  }
  return comparison(node, of.kind, a, b);
}

void BatchCompiler::begin(Stage& stage) {
  stage_ = &stage;
  columns_.assign(program_.pipeline_.schema.columns().size(), std::nullopt);
  // What other stages loaded is not used again: all registers but constants are free.
  free_.clear();
  std::vector<bool> holds_constant(program_.registers_);
  for (const auto& [reg, constant] : program_.constants_) holds_constant[reg] = true;
  for (std::size_t reg = program_.registers_; reg-- > 0;) {
    if (!holds_constant[reg]) free_.push_back(static_cast<std::uint16_t>(reg));
  }
}

void BatchCompiler::run() {
  const Pipeline& pipeline = program_.pipeline_;
  for (const Filter& filter : pipeline.filters) {
    Stage& stage = program_.filters_.emplace_back();
    begin(stage);
    stage.operator_index = filter.operator_index;
    stage.range = filter_range(pipeline, filter.node);
    if (!stage.range) stage.result = compile(filter.node).reg;
  }
  begin(program_.items_);
  program_.items_.operator_index = pipeline.items_operator;
  for (std::size_t i = 0; i < pipeline.items.size(); ++i) {
    const Item& item = pipeline.items[i];
    ItemSource source;
    const bool column = item.node != wire::kNoExpression &&
                        pipeline.nodes[item.node].kind == ExpressionKind::column;
    if (column) source.column = &pipeline.schema.column(pipeline.nodes[item.node].a);
    // Values and keys that are columns go from row to row; aggregates look at registers.
    source.loaded =
        item.node != wire::kNoExpression && (!column || item.aggregate != Aggregate::none);
    if (source.loaded) source.reg = compile(item.node).reg;
    program_.sources_.push_back(source);
  }
}

BatchProgram::BatchProgram(Pipeline pipeline) : pipeline_(std::move(pipeline)) {
  BatchCompiler(*this).run();
  choose_addressing();
}

/// Columns that an expression reads.
static void collect_columns(const Pipeline& pipeline, std::uint16_t index,
                            std::vector<bool>& columns) {
  const Node& node = pipeline.nodes[index];
  if (node.kind == ExpressionKind::column) columns[node.a] = true;
  const std::uint16_t children[] = {node.a, node.b, node.c};
  for (unsigned i = 0; i < children_of(node.kind); ++i) {
    collect_columns(pipeline, children[i], columns);
  }
}

/// Lines of a row that hold these columns, or null bits of theirs.
static std::vector<std::uint32_t> lines_of(const Schema& schema, const std::vector<bool>& columns) {
  constexpr std::uint32_t kLineBytes = 64;
  std::vector<bool> wanted(schema.row_bytes() / kLineBytes + 1);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!columns[i]) continue;
    const Column& column = schema.column(i);
    const std::uint32_t last = (column.offset + column.bytes - 1) / kLineBytes;
    for (std::uint32_t line = column.offset / kLineBytes; line <= last; ++line) {
      wanted[line] = true;
    }
    if (column.nullable) wanted[column.null_byte / kLineBytes] = true;
  }
  std::vector<std::uint32_t> lines;
  for (std::uint32_t line = 0; line < wanted.size(); ++line) {
    if (wanted[line]) lines.push_back(line);
  }
  return lines;
}

void BatchProgram::choose_addressing() {
  std::vector<bool> filters(pipeline_.schema.columns().size());
  std::vector<bool> items(filters.size());
  for (const Filter& filter : pipeline_.filters) collect_columns(pipeline_, filter.node, filters);
  for (const Item& item : pipeline_.items) {
    if (item.node != wire::kNoExpression) collect_columns(pipeline_, item.node, items);
  }
  lines_.filters = lines_of(pipeline_.schema, filters);
  for (const std::uint32_t line : lines_of(pipeline_.schema, items)) {
    if (std::ranges::find(lines_.filters, line) == lines_.filters.end()) {
      lines_.items.push_back(line);
    }
  }
  lines_.total = (pipeline_.schema.row_bytes() + 63) / 64;
  const auto wanted = static_cast<double>(lines_.filters.size() + lines_.items.size());
  smart_ = pipeline_.addressing == wire::Addressing::smart ||
           (pipeline_.addressing == wire::Addressing::automatic && wanted < 0.7 * lines_.total);
}

}  // namespace espalier::table

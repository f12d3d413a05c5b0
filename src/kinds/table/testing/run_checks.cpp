// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/testing/run_checks.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/cpu.hpp"
#include "kinds/table/batch_run.hpp"
#include "kinds/table/reference.hpp"
#include "kinds/table/result.hpp"
#include "kinds/table/testing/random_pipeline.hpp"

namespace espalier::table {
namespace {

using wire::Aggregate;

struct RunResult {
  RunState state;
  std::string error;
  std::vector<std::byte> rows;
  RunNumbers numbers;
  std::string wrong;  // with the run itself
};

/// Runs to the end, by steps and rooms of any size.
RunResult run_batches(base::Random& random, const BatchProgram& program, const MemoryRows& rows,
                      std::size_t group_bytes, SeenInRuns& seen) {
  MemorySource source(rows, 1 + random.below(700));
  const std::size_t row_bytes = program.pipeline().result.row_bytes();
  MemorySink sink(row_bytes * (1 + random.below(random.chance(0.5) ? 3 : 500)));
  // All forms of the work are tried that this machine has.
  const auto cap = static_cast<base::Isa>(random.below(3));
  const base::Isa isa = base::best_isa(base::cpu_features(), cap);
  seen.scalar += isa == base::Isa::scalar;
  seen.avx512 += isa == base::Isa::avx512;
  BatchRun run(program, source, sink, {.group_bytes = group_bytes, .seed = random(), .isa = isa});
  RunResult result{RunState::running, {}, {}, {}, {}};
  while (result.state == RunState::running || result.state == RunState::stalled) {
    result.state = run.step(static_cast<std::uint32_t>(1 + random.below(600)));
    if (run.memory_bytes() > group_bytes + (std::size_t{4} << 20)) result.wrong = "its memory";
    if (result.state == RunState::stalled) {
      ++seen.stalls;
      sink.give_room();
    }
  }
  result.numbers = run.numbers();
  if (result.numbers.rows_sent != sink.count()) result.wrong = "its count of rows";
  if (result.state == RunState::failed) result.error = run.error().message();
  result.rows.assign(sink.rows().begin(), sink.rows().end());
  seen.flushes += result.numbers.flushes != 0;
  seen.unsure += result.numbers.unsure_rows != 0;
  seen.direct += result.numbers.direct_rows != 0;
  return result;
}

/// The sum of an item's absolute values over all rows: at least that over those of any group.
double absolute_sum(const Pipeline& pipeline, const Item& item, const MemoryRows& rows) {
  double sum = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto value = evaluate(pipeline, item.node, rows.row(i));
    if (value && !value->null && std::isfinite(value->real)) sum += std::abs(value->real);
  }
  return sum;
}

bool close(const Value& a, const Value& b, double bound) {
  if (a.null || b.null) return a.null == b.null;
  if (!std::isfinite(a.real) || !std::isfinite(b.real)) return compare_reals(a.real, b.real) == 0;
  return std::abs(a.real - b.real) <= bound;
}

std::string describe(const Pipeline& pipeline) {
  std::string text = "\n" + pipeline.schema.to_text();
  for (const Filter& filter : pipeline.filters) {
    text += "\n  where " + expression_text(pipeline, filter.node);
  }
  for (const Item& item : pipeline.items) {
    text += "\n  " + std::string(name_of(item.aggregate)) + " ";
    if (item.node != wire::kNoExpression) text += expression_text(pipeline, item.node);
  }
  return text;
}

/// Holds a merged row against the reference's. `partial`: it may be of partial groups.
std::string difference_of_rows(const Pipeline& pipeline, const MemoryRows& rows,
                               const std::byte* found, const std::byte* expected, bool partial) {
  if (std::memcmp(found, expected, pipeline.result.row_bytes()) == 0) return "";
  if (!partial) return "its bytes";
  for (const Item& item : pipeline.items) {
    const bool rounds = item.argument.kind == wire::ValueKind::real &&
                        (item.aggregate == Aggregate::sum || item.aggregate == Aggregate::avg);
    const std::size_t end = item.first_column + std::size_t{item.columns};
    for (std::size_t c = item.first_column; c < end; ++c) {
      const Column& column = pipeline.result.column(c);
      const Value a = read_value(column, found);
      const Value b = read_value(column, expected);
      if (rounds && c == item.first_column) {
        const double bound =
            4 * static_cast<double>(rows.size()) * 0x1p-53 * absolute_sum(pipeline, item, rows);
        if (!close(a, b, bound)) return "a sum of reals, beyond rounding";
      } else if (to_text(a, value_type(column)) != to_text(b, value_type(column))) {
        return "column " + column.name + ": " + to_text(a, value_type(column)) + ", not " +
               to_text(b, value_type(column));
      }
    }
  }
  return "";
}

}  // namespace

std::string difference_of_runs(base::Random& random, const MemoryRows& rows, Pipeline checked,
                               std::size_t group_bytes, SeenInRuns& seen) {
  MemorySource source(rows);
  const BatchProgram program(std::move(checked));
  const Pipeline& pipeline = program.pipeline();
  const auto expected = run_reference(pipeline, source);
  const RunResult found = run_batches(random, program, rows, group_bytes, seen);
  seen.smart += program.is_smart();
  if (!found.wrong.empty()) return found.wrong + describe(pipeline);
  // Rows of which distinct is not sure do not count for the limit, so it may read on.
  if (found.numbers.unsure_rows != 0 && pipeline.limit && found.state == RunState::failed)
    return "";
  const std::string error = expected ? "" : expected.error().message();
  if (found.error != error) {
    return "error '" + found.error + "', not '" + error + "'" + describe(pipeline);
  }
  if (!expected) {
    ++seen.errors;
    return "";
  }
  ResultMerge merge(pipeline, random());
  const std::size_t taken = merge.take(found.rows);
  const std::size_t size = merge.is_streaming() ? taken : merge.size();
  if (size != expected->count) {
    return std::to_string(size) + " rows, not " + std::to_string(expected->count) +
           describe(pipeline);
  }
  seen.rows += size != 0;
  seen.groups += pipeline.grouped && size > 1;
  const std::size_t row_bytes = pipeline.result.row_bytes();
  for (std::size_t i = 0; i < size; ++i) {
    const std::byte* row = merge.is_streaming() ? found.rows.data() + i * row_bytes : merge.row(i);
    const std::string difference = difference_of_rows(
        pipeline, rows, row, expected->rows.data() + i * row_bytes, found.numbers.flushes != 0);
    if (!difference.empty()) {
      return "row " + std::to_string(i) + ", " + difference + describe(pipeline);
    }
  }
  return "";
}

std::string difference_in_rounds(base::Random& random, int rounds, SeenInRuns& seen,
                                 RegexCompiler* regexes) {
  for (int round = 0; round < rounds; ++round) {
    const Schema schema = random_small_schema(random);
    const unsigned wild = random.chance(0.3) ? 10 : 0;
    const MemoryRows rows = random_small_rows(random, schema, random.below(1000), wild);
    for (int pipelines = 0; pipelines < 10; ++pipelines) {
      std::string difference = difference_of_runs(
          random, rows, random_pipeline(random, schema, regexes), std::size_t{1} << 20, seen);
      if (!difference.empty()) return difference;
    }
  }
  return "";
}

std::string difference_in_whole_rows(base::Random& random, int rounds, SeenInRuns& seen) {
  using wire::ExpressionKind;
  constexpr ExpressionKind kComparisons[] = {
      ExpressionKind::equal,   ExpressionKind::not_equal,  ExpressionKind::less,
      ExpressionKind::greater, ExpressionKind::less_equal, ExpressionKind::greater_equal};
  const Schema schema = *Schema::parse(
      "a i64 not null, b decimal(12,2) not null, c timestamp not null, d i64 not null,"
      " e i64 not null, f i32 not null, g i32 not null, h i64 not null, i i16 not null,"
      " j i8 not null, k char(5) not null");
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::byte> bytes(random.below(3000) * schema.row_bytes());
    random.fill(bytes);
    const MemoryRows rows(schema, std::move(bytes));
    for (int pipelines = 0; pipelines < 10; ++pipelines) {
      PipelineBuilder builder;
      // Borders are values of rows, or at the ends of all numbers.
      const auto border = [&](std::size_t column) {
        std::int64_t number = 0;
        if (rows.size() != 0) {
          number = static_cast<std::int64_t>(
              read_value(schema.column(column), rows.row(random.below(rows.size()))).number);
        }
        if (random.chance(0.05)) number = std::numeric_limits<std::int64_t>::min();
        if (random.chance(0.05)) number = std::numeric_limits<std::int64_t>::max();
        return builder.constant(column == 1   ? decimal_constant(number, 2)
                                : column == 2 ? timestamp_constant(number)
                                              : integer_constant(number));
      };
      for (std::uint64_t filters = random.below(4); filters-- > 0;) {
        const std::size_t column = random.below(random.chance(0.7) ? 5 : 10);
        const auto op = kComparisons[random.below(random.chance(0.9) ? 4 : 6)];
        const auto left = builder.column(column);
        if (random.chance(0.3)) {
          const auto low = border(column);
          builder.filter(builder.between(left, low, border(column)));
        } else if (random.chance(0.3)) {
          builder.filter(builder.binary(op, border(column), left));
        } else {
          builder.filter(builder.binary(op, left, border(column)));
        }
      }
      if (random.chance(0.3)) builder.limit(random.below(2000));
      const auto message = builder.finish();
      if (!message) return message.error().message();
      auto checked = check_pipeline(*message, schema);
      if (!checked) return checked.error().message();
      std::string difference =
          difference_of_runs(random, rows, std::move(*checked), std::size_t{1} << 20, seen);
      if (!difference.empty()) return difference;
    }
  }
  return "";
}

std::string difference_in_little_memory(base::Random& random, int rounds, SeenInRuns& seen) {
  for (int round = 0; round < rounds; ++round) {
    // Keys of many values, so that 64 KiB cannot hold them.
    const Schema schema =
        *Schema::parse("k i64, n i32 not null, d decimal(10,2), r double, t text(40), b bool");
    MemoryRows rows(schema);
    const std::uint64_t keys = 1 + random.below(8000);
    for (std::uint64_t i = 1000 + random.below(6000); i-- > 0;) {
      const auto key = static_cast<std::int64_t>(random.below(keys));
      rows.append({key == 0 ? Value{} : Value::of(key), Value::of(static_cast<int>(key % 100)),
                   Value::of(static_cast<std::int64_t>(random.below(1000))),
                   random.chance(0.1) ? Value{} : Value::of_real(random.unit() - 0.5),
                   Value::of_text("text " + std::to_string(random.below(keys))),
                   Value::of(key % 2)});
    }
    for (int pipelines = 0; pipelines < 6; ++pipelines) {
      std::string difference = difference_of_runs(random, rows, random_pipeline(random, schema),
                                                  GroupTable::kBytesMin, seen);
      if (!difference.empty()) return difference;
    }
  }
  return "";
}

namespace {

/// Rows whose key `k` lies near others, but for some.
MemoryRows rows_of_near_keys(base::Random& random, const Schema& schema) {
  MemoryRows rows(schema);
  const auto base = static_cast<std::int64_t>(random.chance(0.3) ? random() : random.below(5000));
  const std::uint64_t near = 1 + random.below(random.chance(0.7) ? 60 : 6000);
  const double far = random.chance(0.5) ? 0 : random.unit() / 4;
  // In the order of their keys, later ones lie ever further from the first.
  const bool ascends = random.chance(0.2);
  const std::uint64_t count = random.below(4000);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t from_base = ascends ? i : random.below(near);
    auto key = static_cast<std::int64_t>(static_cast<std::uint64_t>(base) + from_base);
    if (random.chance(far)) key = static_cast<std::int64_t>(random());
    rows.append({Value::of(key), Value::of(static_cast<std::int64_t>(random())),
                 Value::of(static_cast<std::int64_t>(random.below(1000)) - 500),
                 random.chance(0.1) ? Value{} : Value::of(static_cast<std::int64_t>(i)),
                 Value::of(static_cast<std::int64_t>(random.below(100)))});
  }
  return rows;
}

void add_near_groups(base::Random& random, PipelineBuilder& builder) {
  constexpr Aggregate kAggregates[] = {Aggregate::sum, Aggregate::avg, Aggregate::count,
                                       Aggregate::max};
  const PipelineBuilder::NodeId keys[] = {builder.column(0)};
  std::vector<PipelineBuilder::AggregateOf> aggregates;
  if (random.chance(0.4)) aggregates.push_back({Aggregate::count_rows, wire::kNoExpression});
  for (std::uint64_t more = random.below(4); more-- > 0;) {
    // Seldom one that needs a register: a maximum, or of a column that may be null.
    const Aggregate aggregate = kAggregates[random.below(random.chance(0.9) ? 3 : 4)];
    const std::size_t column = random.chance(0.9) ? 1 + random.below(2) : 3;
    aggregates.push_back({aggregate, builder.column(column)});
  }
  builder.group_by(keys, aggregates);
}

}  // namespace

std::string difference_in_near_keys(base::Random& random, int rounds, SeenInRuns& seen) {
  const Schema schema = *Schema::parse(
      "k i64 not null, v i64 not null, d decimal(12,2) not null, n i64, percent i64 not null");
  for (int round = 0; round < rounds; ++round) {
    const MemoryRows rows = rows_of_near_keys(random, schema);
    for (int pipelines = 0; pipelines < 6; ++pipelines) {
      PipelineBuilder builder;
      if (random.chance(0.6)) {
        const auto border = integer_constant(static_cast<std::int64_t>(random.below(120)));
        builder.filter(builder.binary(wire::ExpressionKind::less, builder.column(4),
                                      builder.constant(border)));
      }
      if (random.chance(0.3)) {
        const PipelineBuilder::NodeId values[] = {builder.column(0)};
        builder.project(values);
        builder.distinct();
      } else {
        add_near_groups(random, builder);
      }
      if (random.chance(0.2)) builder.limit(random.below(100));
      const auto message = builder.finish();
      if (!message) return message.error().message();
      auto checked = check_pipeline(*message, schema);
      if (!checked) return checked.error().message();
      const std::size_t bytes =
          random.chance(0.3) ? GroupTable::kBytesMin : std::size_t{1} << random.between(17, 24);
      std::string difference = difference_of_runs(random, rows, *std::move(checked), bytes, seen);
      if (!difference.empty()) return difference;
    }
  }
  return "";
}

}  // namespace espalier::table

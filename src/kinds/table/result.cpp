// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/result.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "kinds/table/pipeline_types.hpp"

namespace espalier::table {
namespace {

using wire::Aggregate;
using wire::ValueKind;

Value read_sum(const Pipeline& pipeline, const Item& item, const std::byte* row) {
  const Value first = read_value(pipeline.result.column(item.first_column), row);
  if (first.null || item.argument.kind == ValueKind::real) return first;
  const Value high = read_value(pipeline.result.column(item.first_column + 1u), row);
  return Value::of(
      wide_of(static_cast<std::int64_t>(first.number), static_cast<std::int64_t>(high.number)));
}

}  // namespace

ValueType answer_type(const Item& item) {
  ValueType type = item.argument;
  switch (item.aggregate) {
    case Aggregate::none: return type;
    case Aggregate::count_rows:
    case Aggregate::count: return computed_type(ValueKind::integer, 0, false);
    case Aggregate::avg: return computed_type(ValueKind::real, 0, true);
    case Aggregate::min:
    case Aggregate::max: type.nullable = true; return type;
    case Aggregate::sum: break;
  }
  return computed_type(type.kind, type.scale, true);
}

Value answer_value(const Pipeline& pipeline, const Item& item, const std::byte* row) {
  if (item.aggregate == Aggregate::sum) return read_sum(pipeline, item, row);
  if (item.aggregate != Aggregate::avg) {
    return read_value(pipeline.result.column(item.first_column), row);
  }
  const Value sum = read_sum(pipeline, item, row);
  const Value count =
      read_value(pipeline.result.column(item.first_column + item.columns - 1u), row);
  if (sum.null || count.number == 0) return {};
  return Value::of_real(as_real(sum, item.argument) / static_cast<double>(count.number));
}

ResultMerge::ResultMerge(const Pipeline& pipeline, std::uint64_t seed)
    : pipeline_(pipeline), slots_(aggregate_slots(pipeline)) {
  if (pipeline.grouped || pipeline.distinct) {
    groups_.emplace(KeyLayout::of(pipeline.result, pipeline.key_columns()), GroupTable::kNoLimit,
                    seed);
  }
}

std::size_t ResultMerge::take(std::span<const std::byte> rows) {
  const std::size_t row_bytes = pipeline_.result.row_bytes();
  ESPALIER_ASSERT(rows.size() % row_bytes == 0);
  const std::size_t count = rows.size() / row_bytes;
  if (!groups_) {
    const std::uint64_t left = pipeline_.limit ? *pipeline_.limit - streamed_ : count;
    const std::size_t taken = std::min<std::uint64_t>(count, left);
    streamed_ += taken;
    return taken;
  }
  for (std::size_t i = 0; i < count && !is_full(); ++i) {
    const std::byte* row = rows.data() + i * row_bytes;
    const GroupTable::Found found = groups_->find_or_insert(row);
    ESPALIER_ASSERT(found.row != nullptr);
    if (!found.is_new) merge_states(slots_, found.row, row);
  }
  return count;
}

bool ResultMerge::is_full() const {
  if (!pipeline_.limit) return false;
  // A group may go on growing until the last row has come.
  if (pipeline_.grouped) return *pipeline_.limit == 0;
  return groups_ ? groups_->size() >= *pipeline_.limit : streamed_ >= *pipeline_.limit;
}

std::size_t ResultMerge::size() const {
  ESPALIER_ASSERT(groups_.has_value());
  const std::uint64_t rows = groups_->size();
  return static_cast<std::size_t>(pipeline_.limit ? std::min(rows, *pipeline_.limit) : rows);
}

}  // namespace espalier::table

// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/aggregate_state.hpp"

#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "base/bytes.hpp"
#include "kinds/table/value.hpp"
#include "kinds/table/wide.hpp"

namespace espalier::table {
namespace {

using base::load_plain;
using wire::Aggregate;

template <class T>
int compare_as(const std::byte* a, const std::byte* b) {
  const T left = load_plain<T>(a);
  const T right = load_plain<T>(b);
  return (left > right) - (left < right);
}

void add_counts(std::byte* into, const std::byte* from) {
  base::store_le(into, load_plain<std::uint64_t>(into) + load_plain<std::uint64_t>(from));
}

void merge_sum(const AggregateSlot& slot, std::byte* into, const std::byte* from) {
  if (slot.is_wide()) {
    const auto sum_of = [&slot](const std::byte* row) {
      return wide_of(load_plain<std::int64_t>(row + slot.offset),
                     load_plain<std::int64_t>(row + slot.high_offset));
    };
    // Partial sums come from elsewhere: they wrap rather than overflow.
    const auto sum = static_cast<Wide>(static_cast<UnsignedWide>(sum_of(into)) +
                                       static_cast<UnsignedWide>(sum_of(from)));
    const std::int64_t halves[] = {low_half(sum), high_half(sum)};
    std::memcpy(into + slot.offset, &halves[0], 8);
    std::memcpy(into + slot.high_offset, &halves[1], 8);
  } else {
    const double sum =
        one_nan(load_plain<double>(into + slot.offset) + load_plain<double>(from + slot.offset));
    std::memcpy(into + slot.offset, &sum, sizeof sum);
  }
}

void merge_state(const AggregateSlot& slot, std::byte* into, const std::byte* from) {
  if (slot.aggregate == Aggregate::count_rows || slot.aggregate == Aggregate::count) {
    add_counts(into + slot.offset, from + slot.offset);
    return;
  }
  if (slot.aggregate == Aggregate::avg) {
    add_counts(into + slot.count_offset, from + slot.count_offset);
  }
  if (slot.is_null(from)) return;
  if (slot.adds()) {
    merge_sum(slot, into, from);
  } else {
    const bool first = slot.is_null(into);
    const int order = first ? 0 : compare_stored(slot, from + slot.offset, into + slot.offset);
    const bool better = slot.aggregate == Aggregate::min ? order < 0 : order > 0;
    if (first || better) std::memcpy(into + slot.offset, from + slot.offset, slot.bytes);
  }
  slot.clear_null(into);
}

}  // namespace

int compare_stored(const AggregateSlot& slot, const std::byte* a, const std::byte* b) {
  switch (slot.argument.stored.kind) {
    case ColumnType::i8: return compare_as<std::int8_t>(a, b);
    case ColumnType::boolean: return compare_as<std::uint8_t>(a, b);
    case ColumnType::i16: return compare_as<std::int16_t>(a, b);
    case ColumnType::i32:
    case ColumnType::date: return compare_as<std::int32_t>(a, b);
    case ColumnType::i64:
    case ColumnType::decimal:
    case ColumnType::timestamp: return compare_as<std::int64_t>(a, b);
    case ColumnType::f32:
      return compare_reals(double{load_plain<float>(a)}, double{load_plain<float>(b)});
    case ColumnType::f64: return compare_reals(load_plain<double>(a), load_plain<double>(b));
    case ColumnType::fixed_char:
    case ColumnType::text: {
      const Column column{"", slot.argument.stored, false, 0, slot.bytes, 0, 0};
      return base::compare(read_value(column, a).text, read_value(column, b).text);
    }
    case ColumnType::invalid: break;
  }
  std::unreachable();
}

std::vector<AggregateSlot> aggregate_slots(const Pipeline& pipeline) {
  std::vector<AggregateSlot> slots;
  if (!pipeline.grouped) return slots;
  for (std::size_t i = pipeline.keys; i < pipeline.items.size(); ++i) {
    const Item& item = pipeline.items[i];
    AggregateSlot slot{item.aggregate, item.argument, static_cast<std::uint16_t>(i)};
    const Column& first = pipeline.result.column(item.first_column);
    slot.offset = first.offset;
    slot.bytes = first.bytes;
    slot.null_byte = first.null_byte;
    slot.null_mask = first.null_mask;
    if (slot.adds() && slot.is_wide()) {
      const Column& high = pipeline.result.column(item.first_column + 1u);
      slot.high_offset = high.offset;
      slot.high_null_byte = high.null_byte;
      slot.high_null_mask = high.null_mask;
    }
    if (item.aggregate == Aggregate::avg) {
      slot.count_offset = pipeline.result.column(item.first_column + item.columns - 1u).offset;
    }
    slots.push_back(slot);
  }
  return slots;
}

std::vector<std::byte> initial_row(const Pipeline& pipeline,
                                   const std::vector<AggregateSlot>& slots) {
  std::vector<std::byte> row(pipeline.result.row_bytes());
  for (const AggregateSlot& slot : slots) {
    row[slot.null_byte] |= std::byte{slot.null_mask};
    row[slot.high_null_byte] |= std::byte{slot.high_null_mask};
  }
  return row;
}

void merge_states(const std::vector<AggregateSlot>& slots, std::byte* into, const std::byte* from) {
  for (const AggregateSlot& slot : slots) merge_state(slot, into, from);
}

}  // namespace espalier::table

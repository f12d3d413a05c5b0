// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/batch_aggregate.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/atomic_bytes.hpp"
#include "base/bytes.hpp"
#include "kinds/table/row_values.hpp"
#include "kinds/table/value.hpp"
#include "kinds/table/wide.hpp"

namespace espalier::table {

/// Rows of a batch, and where their groups are.
struct BatchAggregates::Part {
  std::byte* const* groups;
  std::uint32_t first;
  std::uint32_t count;
  const Register* from;
  bool nullable;

  /// Of the i-th row of the part.
  [[nodiscard]] bool is_null(std::uint32_t i) const {
    return nullable && from->nulls()[first + i] != 0;
  }
};

namespace {

using base::load_plain;
using base::store_plain;
using wire::Aggregate;
using wire::ValueKind;

template <class Part>
void count(std::uint32_t offset, const Part& part) {
  for (std::uint32_t i = 0; i < part.count; ++i) {
    std::byte* const at = part.groups[i] + offset;
    store_plain(at, load_plain<std::uint64_t>(at) + (part.is_null(i) ? 0 : 1));
  }
}

void add_number(const AggregateSlot& slot, std::byte* row, std::int64_t value) {
  const Wide sum = wide_of(load_plain<std::int64_t>(row + slot.offset),
                           load_plain<std::int64_t>(row + slot.high_offset)) +
                   value;
  store_plain(row + slot.offset, low_half(sum));
  store_plain(row + slot.high_offset, high_half(sum));
}

template <class Part>
void sum_numbers(const AggregateSlot& slot, const Part& part) {
  const std::int64_t* const values = part.from->numbers() + part.first;
  if (!part.nullable) {
    for (std::uint32_t i = 0; i < part.count; ++i) add_number(slot, part.groups[i], values[i]);
    return;
  }
  for (std::uint32_t i = 0; i < part.count; ++i) {
    if (part.is_null(i)) continue;
    add_number(slot, part.groups[i], values[i]);
    slot.clear_null(part.groups[i]);
  }
}

template <class Part>
void sum_reals(const AggregateSlot& slot, const Part& part) {
  const double* const values = part.from->reals() + part.first;
  for (std::uint32_t i = 0; i < part.count; ++i) {
    if (part.is_null(i)) continue;
    std::byte* const row = part.groups[i];
    store_plain(row + slot.offset, one_nan(load_plain<double>(row + slot.offset) + values[i]));
    if (part.nullable) slot.clear_null(row);
  }
}

/// Keeps the smaller or greater of what is stored, as a Stored, and what comes.
template <class Stored, class Part, class Value>
void extreme_numbers(const AggregateSlot& slot, const Part& part, const Value* all) {
  const Value* const values = all + part.first;
  const bool min = slot.aggregate == Aggregate::min;
  for (std::uint32_t i = 0; i < part.count; ++i) {
    std::byte* const row = part.groups[i];
    const auto value = static_cast<Stored>(values[i]);
    const auto kept = load_plain<Stored>(row + slot.offset);
    const Stored better = min ? std::min(value, kept) : std::max(value, kept);
    if (!part.nullable) {
      store_plain(row + slot.offset, better);
    } else if (!part.is_null(i)) {
      store_plain(row + slot.offset, slot.is_null(row) ? value : better);
      slot.clear_null(row);
    }
  }
}

template <class Stored, class Part>
void extreme_reals(const AggregateSlot& slot, const Part& part) {
  const double* const values = part.from->reals() + part.first;
  const bool min = slot.aggregate == Aggregate::min;
  for (std::uint32_t i = 0; i < part.count; ++i) {
    if (part.is_null(i)) continue;
    std::byte* const row = part.groups[i];
    const double value = canonical_real(values[i]);
    const int order = compare_reals(value, double{load_plain<Stored>(row + slot.offset)});
    if (slot.is_null(row) || (min ? order < 0 : order > 0)) {
      store_plain(row + slot.offset, static_cast<Stored>(value));
    }
    slot.clear_null(row);
  }
}

void store_text(const AggregateSlot& slot, std::byte* at, std::string_view text) {
  const Column column{"", slot.argument.stored, false, 0, slot.bytes, 0, 0};
  std::memset(at, 0, slot.bytes);
  write_value(column, Value::of_text(text), at);
}

template <class Part>
void extreme_texts(const AggregateSlot& slot, const Part& part) {
  const Column column{"", slot.argument.stored, false, 0, slot.bytes, 0, 0};
  const std::string_view* const values = part.from->texts() + part.first;
  const bool min = slot.aggregate == Aggregate::min;
  for (std::uint32_t i = 0; i < part.count; ++i) {
    if (part.is_null(i)) continue;
    std::byte* const row = part.groups[i];
    std::byte* const at = row + slot.offset;
    if (slot.is_null(row)) {
      store_text(slot, at, values[i]);
      slot.clear_null(row);
      continue;
    }
    const int order = base::compare(values[i], load_text(column, at));
    if (min ? order < 0 : order > 0) store_text(slot, at, values[i]);
  }
}

template <class Part>
void extreme(const AggregateSlot& slot, const Part& part) {
  switch (slot.argument.stored.kind) {
    case ColumnType::i8: return extreme_numbers<std::int8_t>(slot, part, part.from->numbers());
    case ColumnType::boolean: return extreme_numbers<std::uint8_t>(slot, part, part.from->truths());
    case ColumnType::i16: return extreme_numbers<std::int16_t>(slot, part, part.from->numbers());
    case ColumnType::i32:
    case ColumnType::date: return extreme_numbers<std::int32_t>(slot, part, part.from->numbers());
    case ColumnType::i64:
    case ColumnType::decimal:
    case ColumnType::timestamp:
      return extreme_numbers<std::int64_t>(slot, part, part.from->numbers());
    case ColumnType::f32: return extreme_reals<float>(slot, part);
    case ColumnType::f64: return extreme_reals<double>(slot, part);
    case ColumnType::fixed_char:
    case ColumnType::text: return extreme_texts(slot, part);
    case ColumnType::invalid: break;
  }
  std::unreachable();
}

/// The neutral element of min or max; none if the first value must be distinguished.
template <class Stored>
void store_bound(const AggregateSlot& slot, std::byte* row) {
  using Limits = std::numeric_limits<Stored>;
  store_plain(row + slot.offset, slot.aggregate == Aggregate::min ? Limits::max() : Limits::min());
  slot.clear_null(row);
}

/// Makes a row of a group ready for its first value, which is not null.
void prepare_slot(const AggregateSlot& slot, std::byte* row) {
  if (slot.adds()) slot.clear_null(row);
  if (slot.aggregate != Aggregate::min && slot.aggregate != Aggregate::max) return;
  switch (slot.argument.stored.kind) {
    case ColumnType::i8: store_bound<std::int8_t>(slot, row); return;
    case ColumnType::boolean: store_bound<std::uint8_t>(slot, row); return;
    case ColumnType::i16: store_bound<std::int16_t>(slot, row); return;
    case ColumnType::i32:
    case ColumnType::date: store_bound<std::int32_t>(slot, row); return;
    case ColumnType::i64:
    case ColumnType::decimal:
    case ColumnType::timestamp: store_bound<std::int64_t>(slot, row); return;
    default: return;
  }
}

/// The sum of numbers, in halves of 32 bits that 2^31 of them do not overflow.
Wide sum_of(const std::int64_t* values, std::uint32_t count) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    low += values[i] & 0xFFFF'FFFF;
    high += values[i] >> 32;
  }
  return Wide{high} * (Wide{1} << 32) + low;
}

}  // namespace

BatchAggregates::BatchAggregates(const BatchProgram& program)
    : slots_(aggregate_slots(program.pipeline())) {
  for (const AggregateSlot& slot : slots_) {
    registers_.push_back(program.sources()[slot.item].reg);
  }
}

void BatchAggregates::prepare(std::byte* blank) const {
  for (const AggregateSlot& slot : slots_) {
    if (!slot.argument.nullable) prepare_slot(slot, blank);
  }
}

void BatchAggregates::add_to(const AggregateSlot& slot, const Part& part) {
  switch (slot.aggregate) {
    case Aggregate::none: break;
    case Aggregate::count_rows:
    case Aggregate::count: count(slot.offset, part); break;
    case Aggregate::min:
    case Aggregate::max: extreme(slot, part); break;
    case Aggregate::avg: count(slot.count_offset, part); [[fallthrough]];
    case Aggregate::sum:
      if (slot.is_wide()) {
        sum_numbers(slot, part);
      } else {
        sum_reals(slot, part);
      }
      break;
  }
}

void BatchAggregates::add(const Register* registers, std::byte* const* groups, std::uint32_t first,
                          std::uint32_t count) const {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    add_to(slots_[i],
           {groups, first, count, registers + registers_[i], slots_[i].argument.nullable});
  }
}

void BatchAggregates::add_all(const Register* registers, std::uint32_t rows, std::byte* row) const {
  if (rows == 0) return;
  std::byte* groups[kBatchRows];
  std::fill_n(groups, rows, row);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const AggregateSlot& slot = slots_[i];
    // Of no use, perhaps null, where rows are only counted.
    const Register* const from = registers + registers_[i];
    const bool nullable = slot.argument.nullable;
    if (!nullable && slot.is_null(row)) prepare_slot(slot, row);
    if (!nullable &&
        (slot.aggregate == Aggregate::count || slot.aggregate == Aggregate::count_rows)) {
      store_plain(row + slot.offset, load_plain<std::uint64_t>(row + slot.offset) + rows);
    } else if (!nullable && slot.aggregate == Aggregate::sum && slot.is_wide()) {
      const Wide sum = wide_of(load_plain<std::int64_t>(row + slot.offset),
                               load_plain<std::int64_t>(row + slot.high_offset)) +
                       sum_of(from->numbers(), rows);
      store_plain(row + slot.offset, low_half(sum));
      store_plain(row + slot.high_offset, high_half(sum));
    } else {
      add_to(slot, {groups, 0, rows, from, nullable});
    }
  }
}

}  // namespace espalier::table

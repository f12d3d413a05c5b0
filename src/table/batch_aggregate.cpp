// SPDX-License-Identifier: Apache-2.0
#include "table/batch_aggregate.hpp"

#include <cstring>
#include <utility>

#include "base/bytes.hpp"
#include "table/row_values.hpp"
#include "table/value.hpp"
#include "table/wide.hpp"

namespace espalier::table {
namespace {

using wire::Aggregate;
using wire::ValueKind;

/// Rows of a batch, and where their groups are.
struct Part {
  std::byte* const* groups;
  std::uint32_t first;
  std::uint32_t last;
  const Register* from;
  bool nullable;

  [[nodiscard]] bool is_null(std::uint32_t i) const { return nullable && from->nulls()[i] != 0; }
};

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

void count(std::uint32_t offset, const Part& part) {
  for (std::uint32_t i = part.first; i < part.last; ++i) {
    std::byte* const at = part.groups[i] + offset;
    store(at, load<std::uint64_t>(at) + (part.is_null(i) ? 0 : 1));
  }
}

void sum_numbers(const AggregateSlot& slot, const Part& part) {
  const std::int64_t* const values = part.from->numbers();
  for (std::uint32_t i = part.first; i < part.last; ++i) {
    if (part.is_null(i)) continue;
    std::byte* const row = part.groups[i];
    const Wide sum =
        wide_of(load<std::int64_t>(row + slot.offset), load<std::int64_t>(row + slot.high_offset)) +
        values[i];
    store(row + slot.offset, low_half(sum));
    store(row + slot.high_offset, high_half(sum));
    slot.clear_null(row);
  }
}

void sum_reals(const AggregateSlot& slot, const Part& part) {
  const double* const values = part.from->reals();
  for (std::uint32_t i = part.first; i < part.last; ++i) {
    if (part.is_null(i)) continue;
    std::byte* const row = part.groups[i];
    store(row + slot.offset, one_nan(load<double>(row + slot.offset) + values[i]));
    slot.clear_null(row);
  }
}

/// Keeps the smaller or greater of what is stored, as a Stored, and what comes.
template <class Stored, class Value>
void extreme_numbers(const AggregateSlot& slot, const Part& part, const Value* values) {
  const bool min = slot.aggregate == Aggregate::min;
  for (std::uint32_t i = part.first; i < part.last; ++i) {
    if (part.is_null(i)) continue;
    std::byte* const row = part.groups[i];
    const auto value = static_cast<Stored>(values[i]);
    const auto kept = load<Stored>(row + slot.offset);
    if (slot.is_null(row) || (min ? value < kept : value > kept)) store(row + slot.offset, value);
    slot.clear_null(row);
  }
}

template <class Stored>
void extreme_reals(const AggregateSlot& slot, const Part& part) {
  const double* const values = part.from->reals();
  const bool min = slot.aggregate == Aggregate::min;
  for (std::uint32_t i = part.first; i < part.last; ++i) {
    if (part.is_null(i)) continue;
    std::byte* const row = part.groups[i];
    const double value = canonical_real(values[i]);
    const int order = compare_reals(value, double{load<Stored>(row + slot.offset)});
    if (slot.is_null(row) || (min ? order < 0 : order > 0)) {
      store(row + slot.offset, static_cast<Stored>(value));
    }
    slot.clear_null(row);
  }
}

void store_text(const AggregateSlot& slot, std::byte* at, std::string_view text) {
  const Column column{"", slot.argument.stored, false, 0, slot.bytes, 0, 0};
  std::memset(at, 0, slot.bytes);
  write_value(column, Value::of_text(text), at);
}

void extreme_texts(const AggregateSlot& slot, const Part& part) {
  const Column column{"", slot.argument.stored, false, 0, slot.bytes, 0, 0};
  const std::string_view* const values = part.from->texts();
  const bool min = slot.aggregate == Aggregate::min;
  for (std::uint32_t i = part.first; i < part.last; ++i) {
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

}  // namespace

BatchAggregates::BatchAggregates(const BatchProgram& program)
    : slots_(aggregate_slots(program.pipeline())) {
  for (const AggregateSlot& slot : slots_) {
    registers_.push_back(program.sources()[slot.item].reg);
  }
}

void BatchAggregates::add(const Register* registers, std::byte* const* groups, std::uint32_t first,
                          std::uint32_t last) const {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const AggregateSlot& slot = slots_[i];
    const Part part{groups, first, last, &registers[registers_[i]], slot.argument.nullable};
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
}

}  // namespace espalier::table

// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/row_check.hpp"

#include <cstring>
#include <utility>

#include "base/atomic_bytes.hpp"
#include "kinds/table/row_values.hpp"

namespace espalier::table {
namespace {

using base::load_plain;

}  // namespace

RowCheck::RowCheck(const Schema& schema) {
  std::uint32_t end = 0;
  for (std::uint32_t i = 0; i < schema.columns().size(); ++i) {
    const Column& column = schema.column(i);
    add_padding(end, column.offset);
    add_column(column, i);
    end = column.offset + column.bytes;
  }
  if (schema.null_bytes() != 0) {
    std::uint8_t used = 0;  // bits of the last byte
    const std::uint32_t last = schema.null_offset() + schema.null_bytes() - 1;
    for (const Column& column : schema.columns()) {
      if (column.nullable && column.null_byte == last) used |= column.null_mask;
    }
    Step mask{Step::Kind::mask};
    mask.offset = last;
    mask.null_mask = used;
    if (used != 0xFF) steps_.push_back(mask);
    end = last + 1;
  }
  add_padding(end, schema.row_bytes());
}

void RowCheck::add_padding(std::uint32_t offset, std::uint32_t end) {
  if (offset == end) return;
  Step clear{Step::Kind::clear};
  clear.offset = offset;
  clear.length = static_cast<std::uint16_t>(end - offset);
  steps_.push_back(clear);
}

void RowCheck::add_column(const Column& column, std::uint32_t number) {
  Step step{};
  step.offset = column.offset;
  step.null_byte = column.null_byte;
  step.null_mask = column.null_mask;
  step.column = number;
  if (column.nullable) {
    step.kind = Step::Kind::null;
    step.length = static_cast<std::uint16_t>(column.bytes);
    steps_.push_back(step);
  }
  // The value of a null is 0 by now, which is within all limits.
  switch (column.type.kind) {
    case ColumnType::boolean: step.kind = Step::Kind::boolean; break;
    case ColumnType::text:
      step.kind = Step::Kind::text;
      step.length = column.type.length;
      step.fault = RowFault::text_length;
      break;
    case ColumnType::decimal:
      step.kind = Step::Kind::range64;
      step.fault = RowFault::decimal_digits;
      break;
    case ColumnType::date:
      step.kind = Step::Kind::range32;
      step.fault = RowFault::date_range;
      break;
    case ColumnType::timestamp:
      step.kind = Step::Kind::range64;
      step.fault = RowFault::date_range;
      break;
    default: return;
  }
  if (step.kind == Step::Kind::range32 || step.kind == Step::Kind::range64) {
    const IntegerRange range = range_of(column.type);
    step.low = range.low;
    step.high = range.high;
  }
  steps_.push_back(step);
}

bool RowCheck::step(const Step& step, std::byte* row) {
  std::byte* const at = row + step.offset;
  const auto in_range = [&](std::int64_t value) { return value >= step.low && value <= step.high; };
  switch (step.kind) {
    case Step::Kind::clear: std::memset(at, 0, step.length); return true;
    case Step::Kind::mask: *at &= std::byte{step.null_mask}; return true;
    case Step::Kind::null:
      if ((row[step.null_byte] & std::byte{step.null_mask}) != std::byte{0}) {
        std::memset(at, 0, step.length);
      }
      return true;
    case Step::Kind::boolean: *at = std::byte{*at != std::byte{0}}; return true;
    case Step::Kind::range32: return in_range(load_plain<std::int32_t>(at));
    case Step::Kind::range64: return in_range(load_plain<std::int64_t>(at));
    case Step::Kind::text: {
      const auto length = load_plain<std::uint16_t>(at);
      if (length > step.length) return false;
      std::memset(at + 2 + length, 0, step.length - length);
      return true;
    }
  }
  std::unreachable();
}

std::optional<RowCheck::Found> RowCheck::apply(std::byte* row) const {
  for (const Step& one : steps_) {
    if (!step(one, row)) return Found{one.column, one.fault};
  }
  return std::nullopt;
}

std::string describe(const WrongRow& wrong, const Schema& schema) {
  const Column& column = schema.column(wrong.column);
  std::string text = "row " + std::to_string(wrong.row) + ", column " + column.name + ": ";
  switch (wrong.fault) {
    case RowFault::text_length:
      return text + "a text of more than " + std::to_string(column.type.length) + " bytes";
    case RowFault::decimal_digits:
      return text + "more than " + std::to_string(column.type.precision) + " digits";
    case RowFault::date_range: return text + "outside the years 1 to 9999";
    case RowFault::none: break;
  }
  return text + "nothing is wrong";
}

}  // namespace espalier::table

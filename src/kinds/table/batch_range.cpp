// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/batch_range.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/assert.hpp"
#include "kinds/table/pipeline_types.hpp"
#include "kinds/table/row_values.hpp"
#include "kinds/table/value.hpp"

namespace espalier::table {
namespace {

using wire::ExpressionKind;
using wire::ValueKind;

using Limits = std::numeric_limits<std::int64_t>;

/// A constant in the units of a column; nothing where that is not exact.
std::optional<std::int64_t> number_for(const Constant& constant, const ValueType& column) {
  if (constant.null || constant.type.kind == ValueKind::real) return std::nullopt;
  if (!is_numeric(column.kind)) {
    if (constant.type.kind != column.kind) return std::nullopt;
    return constant.number;
  }
  if (!is_numeric(constant.type.kind)) return std::nullopt;
  const unsigned from = constant.type.scale;
  const unsigned to = column.scale;
  std::int64_t number = 0;
  if (to >= from) {
    if (__builtin_mul_overflow(constant.number, power_of_ten(to - from), &number)) {
      return std::nullopt;
    }
    return number;
  }
  const std::int64_t divisor = power_of_ten(from - to);
  if (constant.number % divisor != 0) return std::nullopt;
  return constant.number / divisor;
}

ExpressionKind mirrored(ExpressionKind op) {
  switch (op) {
    case ExpressionKind::less: return ExpressionKind::greater;
    case ExpressionKind::less_equal: return ExpressionKind::greater_equal;
    case ExpressionKind::greater: return ExpressionKind::less;
    case ExpressionKind::greater_equal: return ExpressionKind::less_equal;
    default: return op;
  }
}

/// Sets the borders for `column op number`. False: this operator says no range.
bool set_borders(ColumnRange& range, ExpressionKind op, std::int64_t number) {
  range.low = Limits::min();
  range.high = Limits::max();
  switch (op) {
    case ExpressionKind::equal: range.low = range.high = number; return true;
    case ExpressionKind::less_equal: range.high = number; return true;
    case ExpressionKind::greater_equal: range.low = number; return true;
    case ExpressionKind::less:
      if (number == Limits::min())
        std::swap(range.low, range.high);
      else
        range.high = number - 1;
      return true;
    case ExpressionKind::greater:
      if (number == Limits::max())
        std::swap(range.low, range.high);
      else
        range.low = number + 1;
      return true;
    default: return false;
  }
}

template <class T>
void keep(Batch& batch, const ColumnRange& range) {
  const auto low = static_cast<std::uint64_t>(range.low);
  const std::uint64_t span = static_cast<std::uint64_t>(range.high) - low;
  const std::size_t stride = batch.row_bytes;
  const std::byte* const column = batch.rows + range.offset;
  const auto is_in = [=](std::size_t number) {
    T value;
    std::memcpy(&value, column + number * stride, sizeof value);
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) - low <= span ? 1u : 0u;
  };
  std::uint16_t* const selected = batch.selected;
  const std::uint32_t count = batch.count;
  std::uint32_t kept = 0;
  // Without a branch: each row is written where the next one goes, and stays if it is in.
  if (batch.dense) {
    for (std::uint32_t i = 0; i < count; ++i) {
      selected[kept] = static_cast<std::uint16_t>(i);
      kept += is_in(i);
    }
  } else {
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint16_t number = selected[i];
      selected[kept] = number;
      kept += is_in(number);
    }
  }
  batch.dense = batch.dense && kept == count;
  batch.count = kept;
}

#if defined(__x86_64__)

/// A row is one vector: all its columns are compared together, with full ranges for columns without
/// a filter. Each row is stored at the output position, which advances if it passed.
__attribute__((target("avx512f,avx512bw,avx512vl"))) std::uint32_t copy_avx512(
    const std::byte* rows, std::uint32_t count, std::size_t ahead, std::byte* out,
    const std::int64_t* low, const std::int64_t* high) {
  const __m512i lows = _mm512_loadu_si512(low);
  const __m512i highs = _mm512_loadu_si512(high);
  std::byte* to = out;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::byte* const from = rows + std::size_t{i} * RangeCopy::kRowBytes;
    __builtin_prefetch(from + ahead);
    const __m512i row = _mm512_loadu_si512(from);
    _mm512_storeu_si512(to, row);
    const __mmask8 above = _mm512_cmpge_epi64_mask(row, lows);
    const __mmask8 within = _mm512_mask_cmple_epi64_mask(above, row, highs);
    to += within == 0xFF ? RangeCopy::kRowBytes : 0u;
  }
  return static_cast<std::uint32_t>((to - out) / RangeCopy::kRowBytes);
}

#endif

}  // namespace

std::optional<ColumnRange> filter_range(const Pipeline& pipeline, std::uint16_t index) {
  const Node& node = pipeline.nodes[index];
  const auto is = [&](std::uint16_t of, ExpressionKind kind) {
    return pipeline.nodes[of].kind == kind;
  };
  const bool turned = node.kind != ExpressionKind::between && children_of(node.kind) == 2 &&
                      is(node.b, ExpressionKind::column) && is(node.a, ExpressionKind::constant);
  if (children_of(node.kind) < 2) return std::nullopt;
  const std::uint16_t of_column = turned ? node.b : node.a;
  const std::uint16_t of_constant = turned ? node.a : node.b;
  if (!is(of_column, ExpressionKind::column) || !is(of_constant, ExpressionKind::constant)) {
    return std::nullopt;
  }
  const Column& column = pipeline.schema.column(pipeline.nodes[of_column].a);
  if (column.nullable || !is_integral(column.type.kind) ||
      column.type.kind == ColumnType::boolean) {
    return std::nullopt;
  }
  const ValueType type = value_type(column);
  const auto number_of = [&](std::uint16_t constant) {
    return number_for(pipeline.constants[pipeline.nodes[constant].a], type);
  };
  const auto number = number_of(of_constant);
  if (!number) return std::nullopt;
  ColumnRange range{column.offset, column.type.kind, 0, 0};
  if (node.kind != ExpressionKind::between) {
    const ExpressionKind op = turned ? mirrored(node.kind) : node.kind;
    if (!set_borders(range, op, *number)) return std::nullopt;
    return range;
  }
  if (!is(node.c, ExpressionKind::constant)) return std::nullopt;
  const auto high = number_of(node.c);
  if (!high) return std::nullopt;
  range.low = *number;
  range.high = *high;
  return range;
}

void select(Batch& batch, const ColumnRange& range) {
  if (range.low > range.high) {
    batch.count = 0;
    return;
  }
  switch (range.kind) {
    case ColumnType::i8: keep<std::int8_t>(batch, range); return;
    case ColumnType::i16: keep<std::int16_t>(batch, range); return;
    case ColumnType::i32:
    case ColumnType::date: keep<std::int32_t>(batch, range); return;
    case ColumnType::i64:
    case ColumnType::decimal:
    case ColumnType::timestamp: keep<std::int64_t>(batch, range); return;
    default: std::unreachable();
  }
}

std::optional<RangeCopy> RangeCopy::of(std::span<const ColumnRange> ranges, base::Isa isa) {
#if defined(__x86_64__)
  if (isa < base::Isa::avx512) return std::nullopt;
  RangeCopy copy;
  copy.low_.fill(Limits::min());
  copy.high_.fill(Limits::max());
  for (const ColumnRange& range : ranges) {
    const bool wide = range.kind == ColumnType::i64 || range.kind == ColumnType::decimal ||
                      range.kind == ColumnType::timestamp;
    if (!wide) return std::nullopt;
    // Several ranges of one column are one.
    std::int64_t& low = copy.low_[range.offset / 8];
    std::int64_t& high = copy.high_[range.offset / 8];
    low = std::max(low, range.low);
    high = std::min(high, range.high);
  }
  return copy;
#else
  static_cast<void>(ranges);
  static_cast<void>(isa);
  return std::nullopt;
#endif
}

std::uint32_t RangeCopy::copy(const std::byte* rows, std::uint32_t count, std::size_t ahead,
                              std::byte* out) const {
#if defined(__x86_64__)
  return copy_avx512(rows, count, ahead, out, low_.data(), high_.data());
#else
  static_cast<void>(rows);
  static_cast<void>(ahead);
  static_cast<void>(out);
  return count;
#endif
}

}  // namespace espalier::table

// SPDX-License-Identifier: Apache-2.0
// Range filters, the common kind. They read the rows directly, without registers, and copy whole
// rows that pass while filtering.
//
// Thread: immutable; safe to use from any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/cpu.hpp"
#include "kinds/table/batch_kernels.hpp"
#include "kinds/table/pipeline.hpp"

namespace espalier::table {

/// Values from `low` to `high` of a never-null column of numbers; none if low > high.
struct ColumnRange {
  std::uint32_t offset = 0;
  ColumnType kind = ColumnType::invalid;
  std::int64_t low = 0;
  std::int64_t high = 0;
};

/// The range of a filter's condition, if it is one: = < <= > >= or between, of a column and
/// constants that the column's type holds exactly.
[[nodiscard]] std::optional<ColumnRange> filter_range(const Pipeline& pipeline, std::uint16_t node);

/// Deselects the rows of a batch whose value is outside the range.
void select(Batch& batch, const ColumnRange& range);

/// Filters rows of 64 bytes by ranges, and copies those that pass.
class RangeCopy {
 public:
  static constexpr std::uint32_t kRowBytes = 64;

  /// Nullopt if it does not support these ranges (columns of 8 bytes) or this processor (vectors of
  /// 64 bytes).
  static std::optional<RangeCopy> of(std::span<const ColumnRange> ranges, base::Isa isa);

  /// Prefetch distance: without prefetching, the processor stalls for a third of the copying time
  /// (docs/benchmarks.md).
  static constexpr std::size_t kAheadBytes = 4096;

  /// Filters and copies `count` rows, and prefetches what lies `ahead` bytes after each, which need
  /// not be mapped. Returns the number of rows that passed; they are contiguous at `out`. Requires:
  /// room for `count` rows at `out`.
  std::uint32_t copy(const std::byte* rows, std::uint32_t count, std::size_t ahead,
                     std::byte* out) const;

 private:
  std::array<std::int64_t, 8> low_;
  std::array<std::int64_t, 8> high_;
};

}  // namespace espalier::table

// SPDX-License-Identifier: Apache-2.0
// Filters that keep the rows whose column lies in a range: the usual ones. They read the rows by
// themselves, with no register between, and rows that pass whole are copied as they are filtered.
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

/// Values from `low` to `high` of a column of numbers that is never null; none where low > high.
struct ColumnRange {
  std::uint32_t offset = 0;
  ColumnType kind = ColumnType::invalid;
  std::int64_t low = 0;
  std::int64_t high = 0;
};

/// The range that a filter's condition says, if it is one: = < <= > >= or between, of a column and
/// constants that the column's type holds exactly.
[[nodiscard]] std::optional<ColumnRange> filter_range(const Pipeline& pipeline, std::uint16_t node);

/// Leaves of a batch the rows whose value lies in the range.
void select(Batch& batch, const ColumnRange& range);

/// Filters rows of 64 bytes by ranges, and copies those that pass.
class RangeCopy {
 public:
  static constexpr std::uint32_t kRowBytes = 64;

  /// Nothing where these ranges, or this processor, are not ones that it can do: columns of 8
  /// bytes, and vectors of 64.
  static std::optional<RangeCopy> of(std::span<const ColumnRange> ranges, base::Isa isa);

  /// How far ahead rows in memory are asked for: copying without that, the processor waits a third
  /// of its time (docs/benchmarks.md).
  static constexpr std::size_t kAheadBytes = 4096;

  /// Takes `count` rows, and asks meanwhile for what lies `ahead` bytes behind each, which need not
  /// be memory. Returns: how many passed, which lie at `out` one behind the other.
  /// Requires: room for `count` rows at `out`.
  std::uint32_t copy(const std::byte* rows, std::uint32_t count, std::size_t ahead,
                     std::byte* out) const;

 private:
  std::array<std::int64_t, 8> low_;
  std::array<std::int64_t, 8> high_;
};

}  // namespace espalier::table

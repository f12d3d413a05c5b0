// SPDX-License-Identifier: Apache-2.0
// Counts latencies for percentiles, in constant memory and a few nanoseconds per value.
//
// Buckets are log-linear: values below 64 have one each; above, every power of two is cut into 64
// equal parts, so that a percentile is off by at most 1/64 of itself, and never low.
//
//   value          0 .. 63 | 64 .. 127 | 128 .. 255 | ...       | 2^63 .. 2^64-1
//   bucket width      1    |     1     |     2      |           |     2^57
//
// Thread: one histogram belongs to one thread; merge them when the threads are done.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace espalier::base {

/// A distribution of 64-bit values, nanoseconds most often. 30 KiB.
class Histogram {
 public:
  /// Counts a value, `times` times.
  void record(std::uint64_t value, std::uint64_t times = 1) noexcept {
    counts_[bucket_of(value)] += times;
    count_ += times;
    sum_ += static_cast<double>(value) * static_cast<double>(times);
    if (times != 0 && value < min_) min_ = value;
    if (times != 0 && value > max_) max_ = value;
  }

  /// Adds everything that another one counted.
  void merge(const Histogram& other) noexcept;
  void clear() noexcept { *this = Histogram(); }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  /// 0 when nothing was counted; so are the next three.
  [[nodiscard]] std::uint64_t min() const noexcept { return count_ == 0 ? 0 : min_; }
  [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
  [[nodiscard]] double mean() const noexcept;
  /// The smallest value that at least `fraction` of all counted values do not exceed, at most 1/64
  /// above the true one and never above max(). Requires: 0 <= fraction <= 1; 0 gives min().
  [[nodiscard]] std::uint64_t percentile(double fraction) const noexcept;

  /// Where a value is counted, and the largest value counted there: for tests and for printing.
  [[nodiscard]] static constexpr std::size_t bucket_of(std::uint64_t value) noexcept {
    if (value < kParts) return value;
    const auto power = static_cast<unsigned>(std::bit_width(value)) - 1;
    const unsigned shift = power - kPartBits;
    return (std::size_t{shift} + 1) * kParts + ((value >> shift) - kParts);
  }
  [[nodiscard]] static constexpr std::uint64_t bucket_last(std::size_t bucket) noexcept {
    if (bucket < kParts) return bucket;
    const std::size_t shift = bucket / kParts - 1;
    const std::uint64_t part = kParts + bucket % kParts;
    return (part << shift) + ((std::uint64_t{1} << shift) - 1);
  }

  static constexpr unsigned kPartBits = 6;
  static constexpr std::size_t kParts = std::size_t{1} << kPartBits;
  static constexpr std::size_t kBuckets = (64 - kPartBits + 1) * kParts;

 private:
  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t count_ = 0;
  double sum_ = 0;
  std::uint64_t min_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t max_ = 0;
};

}  // namespace espalier::base

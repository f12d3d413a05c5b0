// SPDX-License-Identifier: Apache-2.0
// Histogram of request durations: one thread records, others read concurrently.
//
// Buckets are log-linear as those of base/histogram.hpp, but few, since each becomes a line of the
// node's metrics: two for every power of two, from 256 ns to 17 s. A bound belongs to the bucket
// that it ends.
//
//   bucket           0    |     1     |     2     |     3     |   ...   |      52       |  53
//   nanoseconds   0..256  | 257..384  | 385..512  | 513..768  |         | up to 2^34    |  more
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/own_counter.hpp"

namespace espalier::offload {

/// The counts up to a read. The sum may be of another instant than the buckets.
struct DurationCounts {
  static constexpr unsigned kFirstBit = 8;
  static constexpr unsigned kLastBit = 34;
  /// Buckets with a bound; the one after the last has none.
  static constexpr std::size_t kBounds = std::size_t{2} * (kLastBit - kFirstBit) + 1;

  std::array<std::uint64_t, kBounds + 1> buckets{};
  std::uint64_t sum_ns = 0;

  DurationCounts& operator+=(const DurationCounts& other) {
    for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i] += other.buckets[i];
    sum_ns += other.sum_ns;
    return *this;
  }

  [[nodiscard]] static constexpr std::size_t bucket_of(std::uint64_t ns) {
    if (ns <= std::uint64_t{1} << kFirstBit) return 0;
    const std::uint64_t below = ns - 1;  // so that a bound is in the bucket before it
    const auto power = static_cast<unsigned>(std::bit_width(below)) - 1;
    const std::size_t bucket =
        std::size_t{2} * (power - kFirstBit) + (below >> (power - 1) & 1) + 1;
    return std::min(bucket, kBounds);
  }
  /// The longest duration that is counted in this bucket. Requires: bucket < kBounds.
  [[nodiscard]] static constexpr std::uint64_t bound_ns(std::size_t bucket) {
    const std::uint64_t power = std::uint64_t{1} << (kFirstBit + bucket / 2);
    return bucket % 2 == 0 ? power : power + power / 2;
  }
};

/// Thread: record() one at a time, read() any.
class Durations {
 public:
  void record(std::uint64_t ns) {
    base::count_own(buckets_[DurationCounts::bucket_of(ns)]);
    base::count_own(sum_ns_, ns);
  }
  [[nodiscard]] DurationCounts read() const {
    DurationCounts counts;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      counts.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
    }
    counts.sum_ns = sum_ns_.load(std::memory_order_relaxed);
    return counts;
  }

 private:
  std::array<std::atomic<std::uint64_t>, DurationCounts::kBounds + 1> buckets_{};
  std::atomic<std::uint64_t> sum_ns_{0};
};

}  // namespace espalier::offload

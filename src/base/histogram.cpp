// SPDX-License-Identifier: Apache-2.0
#include "base/histogram.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"

namespace espalier::base {

void Histogram::merge(const Histogram& other) noexcept {
  for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

double Histogram::mean() const noexcept {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

std::uint64_t Histogram::percentile(double fraction) const noexcept {
  ESPALIER_ASSERT(fraction >= 0 && fraction <= 1);
  if (fraction == 0) return min();
  const double exact = std::ceil(fraction * static_cast<double>(count_));
  const auto wanted = std::min(static_cast<std::uint64_t>(exact), count_);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    seen += counts_[i];
    if (seen >= wanted && seen != 0) return std::clamp(bucket_last(i), min_, max_);
  }
  return max_;
}

}  // namespace espalier::base

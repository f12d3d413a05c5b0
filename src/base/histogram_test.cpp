// SPDX-License-Identifier: Apache-2.0
#include "base/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.hpp"

namespace espalier::base {
namespace {

TEST(Histogram, EmptyOneIsAllZero) {
  const Histogram empty;
  EXPECT_EQ(empty.count(), 0u);
  EXPECT_EQ(empty.min(), 0u);
  EXPECT_EQ(empty.max(), 0u);
  EXPECT_EQ(empty.mean(), 0.0);
  EXPECT_EQ(empty.percentile(0), 0u);
  EXPECT_EQ(empty.percentile(0.5), 0u);
  EXPECT_EQ(empty.percentile(1), 0u);
}

TEST(Histogram, BucketsCoverAllValuesWithoutGapOrOverlap) {
  std::uint64_t next = 0;
  for (std::size_t bucket = 0; bucket < Histogram::kBuckets; ++bucket) {
    const std::uint64_t last = Histogram::bucket_last(bucket);
    ASSERT_GE(last, next);
    ASSERT_EQ(Histogram::bucket_of(next), bucket);
    ASSERT_EQ(Histogram::bucket_of(last), bucket);
    ASSERT_LE(last - next, next / 64);
    next = last + 1;
  }
  EXPECT_EQ(next, 0u);  // the last bucket ends with the last number
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (std::uint64_t value = 0; value < 100; ++value) histogram.record(value);
  EXPECT_EQ(histogram.percentile(0.01), 0u);
  EXPECT_EQ(histogram.percentile(0.5), 49u);
  EXPECT_EQ(histogram.percentile(0.99), 98u);
  EXPECT_EQ(histogram.percentile(1), 99u);
  EXPECT_DOUBLE_EQ(histogram.mean(), 49.5);
}

TEST(Histogram, PercentilesAreNeverLowAndLittleHigh) {
  Random random(seed_from_environment(1));
  Histogram histogram;
  std::vector<std::uint64_t> values;
  for (int i = 0; i < 5000; ++i) {
    values.push_back(random() >> random.below(64));
    histogram.record(values.back());
  }
  std::sort(values.begin(), values.end());
  EXPECT_EQ(histogram.min(), values.front());
  EXPECT_EQ(histogram.max(), values.back());
  for (const double fraction : {0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<std::size_t>(std::ceil(fraction * 5000)) - 1;
    const std::uint64_t found = histogram.percentile(fraction);
    EXPECT_GE(found, values[rank]);
    EXPECT_LE(found - values[rank], values[rank] / 64);
  }
}

TEST(Histogram, MergingIsAsCountingTogether) {
  Random random(seed_from_environment(2));
  Histogram together;
  Histogram parts[3];
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t value = random.below(1000000);
    together.record(value);
    parts[i % 3].record(value);
  }
  Histogram merged;
  for (const Histogram& part : parts) merged.merge(part);
  EXPECT_EQ(merged.count(), together.count());
  EXPECT_EQ(merged.min(), together.min());
  EXPECT_EQ(merged.max(), together.max());
  EXPECT_DOUBLE_EQ(merged.mean(), together.mean());
  for (const double fraction : {0.1, 0.5, 0.999}) {
    EXPECT_EQ(merged.percentile(fraction), together.percentile(fraction));
  }
}

TEST(Histogram, CountsSeveralAtOnceAndNoneAtAll) {
  Histogram histogram;
  histogram.record(10, 99);
  histogram.record(1000, 1);
  histogram.record(5, 0);
  EXPECT_EQ(histogram.count(), 100u);
  EXPECT_EQ(histogram.min(), 10u);
  EXPECT_EQ(histogram.percentile(0.99), 10u);
  EXPECT_EQ(histogram.percentile(0.995), 1000u);
  histogram.clear();
  EXPECT_EQ(histogram.count(), 0u);
}

TEST(Histogram, TheLargestNumberFits) {
  Histogram histogram;
  histogram.record(~std::uint64_t{0});
  EXPECT_EQ(histogram.percentile(0.5), ~std::uint64_t{0});
}

}  // namespace
}  // namespace espalier::base

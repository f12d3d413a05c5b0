// SPDX-License-Identifier: Apache-2.0
#include "base/zipf.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace espalier::base {
namespace {

TEST(Zipf, TheClosedSumEqualsTheLongOne) {
  for (const double theta : {0.1, 0.5, 0.9, 0.99}) {
    double sum = 0;
    for (std::uint64_t i = 1; i <= 100000; ++i) {
      sum += std::pow(static_cast<double>(i), -theta);
      if (i == 1 || i == 255 || i == 256 || i == 257 || i == 1000 || i == 100000) {
        EXPECT_NEAR(zipf_sum(i, theta) / sum, 1.0, 1e-12) << i << " " << theta;
      }
    }
  }
}

std::vector<double> shares(std::uint64_t n, double theta, int draws) {
  Random random(seed_from_environment(1));
  const Zipf zipf(n, theta);
  std::vector<double> share(n);
  for (int i = 0; i < draws; ++i) share.at(zipf(random)) += 1.0 / draws;
  return share;
}

TEST(Zipf, RanksComeInTheirProportion) {
  constexpr std::uint64_t kItems = 1000;
  const auto share = shares(kItems, kZipfTheta, 400000);
  const double sum = zipf_sum(kItems, kZipfTheta);
  // The method is exact for the first two ranks.
  EXPECT_NEAR(share[0], 1 / sum, 0.004);
  EXPECT_NEAR(share[1], std::pow(2.0, -kZipfTheta) / sum, 0.003);
  // Elsewhere the power law follows the sums closely enough to compare whole groups of ranks.
  for (std::size_t first = 2; first < kItems; first *= 2) {
    const std::size_t last = std::min<std::size_t>(first * 2, kItems);
    double drawn = 0;
    double expected = 0;
    for (std::size_t rank = first; rank < last; ++rank) {
      drawn += share[rank];
      expected += std::pow(static_cast<double>(rank + 1), -kZipfTheta) / sum;
    }
    EXPECT_NEAR(drawn / expected, 1.0, 0.25) << "ranks from " << first;
  }
}

TEST(Zipf, SmallSizesStayInRange) {
  for (std::uint64_t n = 1; n <= 5; ++n) {
    const auto share = shares(n, 0.5, 10000);  // at() throws when a rank is out of range
    EXPECT_TRUE(std::is_sorted(share.rbegin(), share.rend())) << n;
    EXPECT_GT(share.back(), 0) << n;
  }
}

TEST(Zipf, HugeSizesStayInRange) {
  Random random(seed_from_environment(2));
  const std::uint64_t n = std::uint64_t{1} << 40;
  const Zipf zipf(n);
  for (int i = 0; i < 10000; ++i) ASSERT_LT(zipf(random), n);
}

TEST(Zipf, GrowingIsAsBeingMadeLarger) {
  Zipf grown(10);
  grown.resize(5000);
  const Zipf made(5000);
  Random a(3);
  Random b(3);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(grown(a), made(b));
}

TEST(Zipf, ScramblingScattersTheHotRanks) {
  constexpr std::uint64_t kItems = 10000;
  Random random(seed_from_environment(4));
  const ScrambledZipf zipf(kItems);
  std::vector<int> drawn(kItems);
  for (int i = 0; i < 100000; ++i) ++drawn.at(zipf(random));
  const auto hottest = std::max_element(drawn.begin(), drawn.end()) - drawn.begin();
  EXPECT_EQ(static_cast<std::uint64_t>(hottest), scale(mix64(1), kItems));
  const auto first_tenth = std::accumulate(drawn.begin(), drawn.begin() + kItems / 10, 0);
  EXPECT_LT(first_tenth, 40000);
}

TEST(Zipf, LatestPrefersTheNewest) {
  Random random(seed_from_environment(5));
  Latest latest(100);
  latest.resize(200);
  std::vector<int> drawn(200);
  for (int i = 0; i < 20000; ++i) ++drawn.at(latest(random));
  EXPECT_EQ(std::max_element(drawn.begin(), drawn.end()) - drawn.begin(), 199);
}

}  // namespace
}  // namespace espalier::base

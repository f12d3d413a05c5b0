// SPDX-License-Identifier: Apache-2.0
#include "base/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace espalier::base {
namespace {

// Seeds go through SplitMix64, whose first numbers for seed 0 are published.
TEST(Random, SplitMixGivesItsPublishedNumbers) {
  std::uint64_t state = 0;
  EXPECT_EQ(splitmix64(state), 0xe220a8397b1dcdafu);
  EXPECT_EQ(splitmix64(state), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(splitmix64(state), 0x06c45d188009454fu);
}

TEST(Random, OneSeedGivesOneStream) {
  Random a(7);
  Random b(7);
  Random c(8);
  bool differs = false;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t x = a();
    ASSERT_EQ(x, b());
    differs |= x != c();
  }
  EXPECT_TRUE(differs);
}

// Golden numbers: a change of the stream would change every recorded seed and result hash.
TEST(Random, TheStreamNeverChanges) {
  Random random(1);
  EXPECT_EQ(random(), 0xb3f2af6d0fc710c5u);
  EXPECT_EQ(random(), 0x853b559647364ceau);
  EXPECT_EQ(random(), 0x92f89756082a4514u);
}

TEST(Random, BelowIsInRangeAndEven) {
  Random random(seed_from_environment(3));
  for (const std::uint64_t n : {1u, 2u, 3u, 7u, 100u}) {
    std::vector<std::uint64_t> seen(n);
    const std::uint64_t draws = 10000 * n;
    for (std::uint64_t i = 0; i < draws; ++i) ++seen.at(random.below(n));
    // Six standard deviations of about 100 around 10000.
    for (const std::uint64_t count : seen) {
      EXPECT_GT(count, 9400u);
      EXPECT_LT(count, 10600u);
    }
  }
}

// With n = 3 * 2^62, taking the upper bits without rejection would draw the multiples of 3 twice as
// often as the others.
TEST(Random, BelowRejectsTheSurplusOfHugeBounds) {
  Random random(seed_from_environment(4));
  const std::uint64_t n = std::uint64_t{3} << 62;
  std::array<int, 3> rest{};
  for (int i = 0; i < 30000; ++i) {
    const std::uint64_t x = random.below(n);
    ASSERT_LT(x, n);
    ++rest[x % 3];
  }
  for (const int count : rest) EXPECT_NEAR(count, 10000, 600);
}

TEST(Random, BetweenIncludesBothEnds) {
  Random random(seed_from_environment(5));
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.between(10, 12));
  EXPECT_EQ(seen, (std::set<std::uint64_t>{10, 11, 12}));
  EXPECT_EQ(random.between(5, 5), 5u);
  static_cast<void>(random.between(0, ~std::uint64_t{0}));
}

TEST(Random, UnitAndChance) {
  Random random(seed_from_environment(6));
  double sum = 0;
  int hits = 0;
  for (int i = 0; i < 10000; ++i) {
    const double x = random.unit();
    ASSERT_GE(x, 0.0);
    ASSERT_LT(x, 1.0);
    sum += x;
    hits += random.chance(0.25);
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
  EXPECT_NEAR(hits, 2500, 300);
  EXPECT_FALSE(random.chance(0));
  EXPECT_TRUE(random.chance(1));
}

TEST(Random, FillWritesExactlyItsBytes) {
  for (std::size_t size = 0; size <= 33; ++size) {
    std::vector<std::byte> bytes(size + 1, std::byte{0x5a});
    Random random(9);
    random.fill(std::span(bytes).first(size));
    EXPECT_EQ(bytes.back(), std::byte{0x5a});
    Random again(9);
    std::vector<std::byte> same(size);
    again.fill(same);
    EXPECT_TRUE(std::equal(same.begin(), same.end(), bytes.begin()));
  }
}

TEST(Random, ForksDiffer) {
  Random random(10);
  Random a = random.fork();
  Random b = random.fork();
  EXPECT_NE(a(), b());
}

TEST(Random, MixIsABijectionOnASample) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 10000; ++i) seen.insert(mix64(i));
  EXPECT_EQ(seen.size(), 10000u);
}

/// Sets a variable of the environment, and puts back what was there.
class WithSeed {
 public:
  explicit WithSeed(const char* value) {
    if (const char* old = std::getenv("ESPALIER_SEED")) old_ = old;
    setenv("ESPALIER_SEED", value, 1);
  }
  ~WithSeed() {
    if (old_) {
      setenv("ESPALIER_SEED", old_->c_str(), 1);
    } else {
      unsetenv("ESPALIER_SEED");
    }
  }
  WithSeed(const WithSeed&) = delete;
  WithSeed& operator=(const WithSeed&) = delete;

 private:
  std::optional<std::string> old_;
};

std::uint64_t seed_with(const char* value) {
  const WithSeed with(value);
  return seed_from_environment(7);
}

TEST(Random, SeedComesFromTheEnvironment) {
  EXPECT_EQ(seed_with("12"), 12u);
  EXPECT_EQ(seed_with("0x10"), 16u);
  EXPECT_EQ(seed_with("18446744073709551615"), ~std::uint64_t{0});
  for (const char* bad : {"", "seed", "-1", "12x", "18446744073709551616"}) {
    EXPECT_EQ(seed_with(bad), 7u) << bad;
  }
}

}  // namespace
}  // namespace espalier::base

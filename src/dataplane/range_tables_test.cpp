// SPDX-License-Identifier: Apache-2.0
#include "dataplane/range_tables.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.hpp"

namespace espalier::dataplane {
namespace {

std::uint32_t range_of(const std::vector<std::uint64_t>& lows, std::uint64_t key) {
  return static_cast<std::uint32_t>(std::ranges::upper_bound(lows, key) - lows.begin() - 1);
}

std::size_t largest_stage(const RangeTables& tables) {
  std::size_t largest = 0;
  for (const auto& stage : tables.stages) largest = std::max(largest, stage.size());
  return largest;
}

// All keys of a small width, over every choice of ranges.
void check_every_choice(std::uint32_t bits, std::uint32_t stages) {
  const std::uint32_t width = bits * stages;
  const std::uint64_t keys = std::uint64_t{1} << width;
  for (std::uint64_t choice = 0; choice < std::uint64_t{1} << (keys - 1); ++choice) {
    std::vector<std::uint64_t> lows{0};
    for (std::uint64_t key = 1; key < keys; ++key) {
      if ((choice >> (key - 1) & 1) != 0) lows.push_back(key);
    }
    const RangeTables tables = make_range_tables(lows, bits, stages);
    ASSERT_LE(largest_stage(tables), 2 * lows.size()) << "choice " << choice;
    for (std::uint64_t key = 0; key < keys; ++key) {
      ASSERT_EQ(find_range(tables, key), range_of(lows, key)) << "choice " << choice;
    }
  }
}

TEST(RangeTables, EveryChoiceOfRangesOfFourBits) {
  check_every_choice(1, 4);
  check_every_choice(2, 2);
  check_every_choice(4, 1);
}

// The example of the paper's figure: 6 bits in three stages.
TEST(RangeTables, TheRangesOfAFigureOfSixBits) {
  const std::vector<std::uint64_t> lows{0, 11, 15, 38, 57};
  const RangeTables tables = make_range_tables(lows, 2, 3);
  for (std::uint64_t key = 0; key < 64; ++key) {
    EXPECT_EQ(find_range(tables, key), range_of(lows, key)) << key;
  }
  EXPECT_LE(largest_stage(tables), 10u);
  // The paper's algorithm makes 4, 9 and 8.
  EXPECT_EQ(tables.stages[0].size(), 4u);
  EXPECT_LT(tables.stages[1].size(), 9u);
  EXPECT_LT(tables.stages[2].size(), 8u);
}

TEST(RangeTables, OneRangeTakesNoEntries) {
  const RangeTables tables = make_range_tables(std::vector<std::uint64_t>{0});
  EXPECT_EQ(largest_stage(tables), 0u);
  EXPECT_EQ(find_range(tables, 0), 0u);
  EXPECT_EQ(find_range(tables, ~std::uint64_t{0}), 0u);
}

void check_random(const std::vector<std::uint64_t>& lows, base::Random& random) {
  const RangeTables tables = make_range_tables(lows);
  ASSERT_LE(largest_stage(tables), 2 * lows.size());
  for (std::size_t i = 0; i < lows.size(); ++i) {
    ASSERT_EQ(find_range(tables, lows[i]), i);
    if (i == 0) continue;
    ASSERT_EQ(find_range(tables, lows[i] - 1), i - 1);
  }
  ASSERT_EQ(find_range(tables, ~std::uint64_t{0}), lows.size() - 1);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t key = random() >> random.below(64);
    ASSERT_EQ(find_range(tables, key), range_of(lows, key));
  }
}

TEST(RangeTables, RandomRangesOf64BitsTakeTwoEntriesEachAtMost) {
  base::Random random(base::seed_from_environment(1));
  for (int round = 0; round < 120; ++round) {
    std::set<std::uint64_t> drawn{0};
    const std::size_t count = 1 + random.below(200);
    const std::uint64_t base = random();
    while (drawn.size() < count) {
      // Anywhere, near each other, and such that alike parts meet at every stage.
      switch (random.below(3)) {
        case 0: drawn.insert(random()); break;
        case 1: drawn.insert(base + random.below(1000)); break;
        default: drawn.insert(base ^ random.below(4) << 16 * random.below(4)); break;
      }
    }
    check_random({drawn.begin(), drawn.end()}, random);
  }
}

TEST(RangeTables, AThousandRangesFitTablesOfTwoThousandEntries) {
  base::Random random(base::seed_from_environment(2));
  for (int round = 0; round < 20; ++round) {
    std::set<std::uint64_t> drawn{0};
    while (drawn.size() < 1024) drawn.insert(random());
    const std::vector<std::uint64_t> lows(drawn.begin(), drawn.end());
    ASSERT_LE(largest_stage(make_range_tables(lows)), 2048u);
    check_random(lows, random);
  }
}

}  // namespace
}  // namespace espalier::dataplane

// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/leaf_heat.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace espalier::tree {
namespace {

constexpr std::uint64_t kStart = 1'000'000'000'000;

TEST(LeafHeat, TellsTheMostReadFirst) {
  LeafHeat heat;
  const std::vector<wire::Lid> some = {5, 7, 5, 9, 5, 9};
  heat.add(some, kStart);
  EXPECT_EQ(heat.most_read(10, kStart), (std::vector<LeafHeat::Count>{{5, 3}, {9, 2}, {7, 1}}));
  EXPECT_EQ(heat.most_read(1, kStart), (std::vector<LeafHeat::Count>{{5, 3}}));
}

TEST(LeafHeat, WhatWasCountedIsHalvedEachHalfSecond) {
  LeafHeat heat;
  heat.add(std::vector<wire::Lid>(9, 5), kStart);
  heat.add(std::vector<wire::Lid>(1, 6), kStart);
  EXPECT_EQ(heat.most_read(10, kStart + LeafHeat::kHalveNs),
            (std::vector<LeafHeat::Count>{{5, 4}}));
  EXPECT_EQ(heat.most_read(10, kStart + 3 * LeafHeat::kHalveNs),
            (std::vector<LeafHeat::Count>{{5, 1}}));
  EXPECT_TRUE(heat.most_read(10, kStart + 1000 * LeafHeat::kHalveNs).empty());
  heat.add(std::vector<wire::Lid>(2, 8), kStart + 2000 * LeafHeat::kHalveNs);
  EXPECT_EQ(heat.most_read(10, kStart + 2000 * LeafHeat::kHalveNs),
            (std::vector<LeafHeat::Count>{{8, 2}}));
}

// A client that reports nonexistent leaves costs no more memory than this.
TEST(LeafHeat, MemoryIsBounded) {
  LeafHeat heat;
  std::vector<wire::Lid> many;
  for (std::uint32_t i = 0; i < 3 * LeafHeat::kLeavesMax; ++i) many.push_back(i + 1);
  heat.add(std::vector<wire::Lid>(100, 7), kStart);
  heat.add(many, kStart);
  const auto counts = heat.most_read(many.size(), kStart);
  EXPECT_LE(counts.size(), LeafHeat::kLeavesMax);
  EXPECT_EQ(counts.front().lid, 7u);
}

}  // namespace
}  // namespace espalier::tree

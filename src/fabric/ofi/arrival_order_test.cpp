// SPDX-License-Identifier: Apache-2.0
// Whatever order frames come in, they are taken in that of their numbers, each once.
#include "fabric/ofi/arrival_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.hpp"

namespace espalier::fabric::ofi {
namespace {

using wire::ofi::kFrames;

TEST(OfiArrivalOrder, FramesComeOutAsTheyWereSent) {
  base::Random random(base::seed_from_environment(71));
  ArrivalOrder order;
  std::vector<std::uint32_t> under_way;
  std::uint32_t sent = 0;
  for (std::uint32_t taken = 0; taken != 20'000;) {
    while (sent - taken < kFrames && random.below(4) != 0) under_way.push_back(sent++);
    if (under_way.empty()) continue;
    const auto pick =
        under_way.begin() + static_cast<std::ptrdiff_t>(random.below(under_way.size()));
    ASSERT_TRUE(order.add(*pick, {*pick, *pick + 1}));
    ASSERT_FALSE(order.add(*pick, {0, 0})) << "twice";
    under_way.erase(pick);
    while (const auto next = order.take()) {
      ASSERT_EQ(*next, (ArrivalOrder::Frame{taken, taken + 1}));
      ++taken;
    }
  }
}

TEST(OfiArrivalOrder, WhatNobodySendsIsRefused) {
  ArrivalOrder order;
  EXPECT_FALSE(order.add(kFrames, {}));
  EXPECT_FALSE(order.add(UINT32_MAX, {}));
  ASSERT_TRUE(order.add(0, {}));
  ASSERT_TRUE(order.take());
  EXPECT_FALSE(order.add(0, {})) << "it has been taken";
  EXPECT_TRUE(order.add(kFrames, {}));
}

TEST(OfiArrivalOrder, WhatWaitsCanBeDropped) {
  ArrivalOrder order;
  ASSERT_TRUE(order.add(3, {30, 1}));
  ASSERT_TRUE(order.add(5, {50, 1}));
  EXPECT_FALSE(order.take());
  EXPECT_EQ(order.drop()->buffer + order.drop()->buffer, 80u);
  EXPECT_FALSE(order.drop());
}

}  // namespace
}  // namespace espalier::fabric::ofi

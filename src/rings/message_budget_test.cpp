// SPDX-License-Identifier: Apache-2.0
#include "rings/message_budget.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace espalier::rings {
namespace {

TEST(MessageBudget, IsThatOfAllTogether) {
  MessageBudget budget(1000);
  EXPECT_TRUE(budget.take(600));
  EXPECT_FALSE(budget.take(401));
  EXPECT_EQ(budget.left(), 400u);
  EXPECT_TRUE(budget.take(400));
  EXPECT_FALSE(budget.take(1));
  EXPECT_FALSE(budget.take(~std::uint64_t{0}));
  budget.give(1000);
  EXPECT_EQ(budget.used(), 0u);
}

TEST(MessageBudget, MayBeOverdrawnAndThenHasNothingLeft) {
  MessageBudget budget(1000);
  budget.take_anyway(1500);
  EXPECT_EQ(budget.left(), 0u);
  EXPECT_FALSE(budget.take(1));
  budget.give(1500);
  EXPECT_EQ(budget.left(), 1000u);
}

TEST(MessageShare, IsNeverMoreThanWhatIsLeftForAllOthers) {
  MessageBudget budget(1000);
  MessageShare share(budget);
  EXPECT_FALSE(share.allows(1001));
  EXPECT_TRUE(share.take(400));
  EXPECT_TRUE(share.take(100));  // 500, and 500 are left
  EXPECT_FALSE(share.take(1));
  EXPECT_EQ(share.used(), 500u);
  share.give(500);
  EXPECT_TRUE(share.allows(500));
  EXPECT_FALSE(share.allows(501));  // in one step no more than in many
}

TEST(MessageShare, HoweverManyTakeAllTheyCanOneMoreGetsAsMuchAsTheLast) {
  MessageBudget budget(1 << 20);
  std::vector<std::unique_ptr<MessageShare>> shares;
  std::uint64_t last = ~std::uint64_t{0};
  for (int i = 0; i < 10; ++i) {
    shares.push_back(std::make_unique<MessageShare>(budget));
    for (const std::uint64_t at_a_time : {100'000, 64}) {
      while (shares.back()->take(at_a_time)) {
      }
    }
    EXPECT_LE(shares.back()->used(), last);
    EXPECT_GE(budget.left(), shares.back()->used());
    last = shares.back()->used();
  }
  EXPECT_GT(last, 0u);
  for (const auto& share : shares) share->give(share->used());
  EXPECT_EQ(budget.used(), 0u);
}

TEST(MessageShare, HasNoLimitWithoutABudget) {
  MessageShare share;
  EXPECT_TRUE(share.take(~std::uint64_t{0} >> 1));
  EXPECT_TRUE(share.allows(~std::uint64_t{0} >> 1));
}

}  // namespace
}  // namespace espalier::rings

// SPDX-License-Identifier: Apache-2.0
// The worlds notice a chain that breaks a rule.
#include <gtest/gtest.h>

#include "chain/planted_chain_bugs.hpp"
#include "chain/testing/chain_world.hpp"

namespace espalier::chain {
namespace {

/// What is wrong in the first of these worlds in which something is.
std::string first_wrong_world() {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const std::size_t members = 2 + seed % 2;
    const WorldResult result = run_world(seed, {.members = members, .fences = 30});
    if (!result.wrong.empty()) return result.wrong;
  }
  return {};
}

void expect_bug_noticed(Bug bug) {
  const base::Planted planted(bug);
  const std::string wrong = first_wrong_world();
  EXPECT_NE(wrong, "");
  ::testing::Test::RecordProperty("wrong", wrong);
}

TEST(ChainPlanted, AcknowledgingBeforeTheTailHasItIsNoticed) {
  expect_bug_noticed(Bug::acknowledged_early);
}
TEST(ChainPlanted, AcceptingAnOldEpochIsNoticed) { expect_bug_noticed(Bug::old_epoch_accepted); }
TEST(ChainPlanted, AHeadThatReadsBeforeTheTailAcknowledgedIsNoticed) {
  expect_bug_noticed(Bug::head_reads_early);
}
TEST(ChainPlanted, AHeadThatDoesNotWaitForTheOneBeforeIsNoticed) {
  expect_bug_noticed(Bug::fence_ignored);
}
TEST(ChainPlanted, AHeadThatServesWithoutAnswersIsNoticed) {
  expect_bug_noticed(Bug::lease_ignored);
}
TEST(ChainPlanted, TakingARecordBehindAGapIsNoticed) { expect_bug_noticed(Bug::gap_accepted); }

TEST(ChainPlanted, WithoutABugNothingIsWrong) { EXPECT_EQ(first_wrong_world(), ""); }

}  // namespace
}  // namespace espalier::chain

// SPDX-License-Identifier: Apache-2.0
// The worlds notice a chain that breaks a rule.
#include <gtest/gtest.h>

#include "chain/planted_chain_bugs.hpp"
#include "chain/testing/chain_world.hpp"

namespace espalier::chain {
namespace {

/// What is wrong in the first of these worlds in which something is.
std::string first_wrong_world(std::uint64_t seeds, const WorldTerms& terms) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const WorldResult result = run_world(seed, terms);
    if (!result.wrong.empty()) return result.wrong;
  }
  return {};
}

void expect_bug_noticed(Bug bug, const WorldTerms& terms = {.fences = 30, .full = 0}) {
  const base::Planted planted(bug);
  const std::string wrong = first_wrong_world(4000, terms);
  EXPECT_NE(wrong, "");
  ::testing::Test::RecordProperty("wrong", wrong);
}

TEST(ChainPlanted, AcknowledgingBeforeTheTailHasItIsNoticed) {
  expect_bug_noticed(Bug::acknowledged_early);
}

TEST(ChainPlanted, AcceptingAnOldEpochIsNoticed) { expect_bug_noticed(Bug::old_epoch_accepted); }

// The next head holds what the tail has no room for, and dies before that has it.
TEST(ChainPlanted, AHeadThatReadsBeforeTheTailAcknowledgedIsNoticed) {
  expect_bug_noticed(Bug::head_reads_early, {.fences = 30, .crash = 0.01, .full = 0.03});
}

// A proposal is late: the one that it leaves out was answered again meanwhile.
TEST(ChainPlanted, AHeadThatDoesNotWaitForTheOneBeforeIsNoticed) {
  expect_bug_noticed(Bug::fence_ignored, {.fences = 30, .crash = 0, .cut = 0.01, .full = 0});
}

TEST(ChainPlanted, AHeadThatServesWithoutAnswersIsNoticed) {
  expect_bug_noticed(Bug::lease_ignored);
}

TEST(ChainPlanted, TakingARecordBehindAGapIsNoticed) { expect_bug_noticed(Bug::gap_accepted); }

TEST(ChainPlanted, WithoutABugNothingIsWrong) {
  for (const WorldTerms& terms :
       {WorldTerms{.fences = 30, .full = 0}, WorldTerms{.fences = 30, .crash = 0.01, .full = 0.03},
        WorldTerms{.fences = 30, .crash = 0, .cut = 0.01, .full = 0}}) {
    EXPECT_EQ(first_wrong_world(300, terms), "");
  }
}

}  // namespace
}  // namespace espalier::chain

// SPDX-License-Identifier: Apache-2.0
// The seeds of cuts notice each step that is left out.
#include <gtest/gtest.h>

#include "channel/rings/planted_client_bugs.hpp"
#include "shards/testing/cut_world.hpp"

namespace espalier::client {
namespace {

class CutRules : public ::testing::TestWithParam<Bug> {};

TEST_P(CutRules, SomeSeedNoticesThatItIsBroken) {
  const base::Planted planted(GetParam());
  CutReached reached;
  const std::string wrong = wrong_cuts(base::seed_from_environment(1000), 300, reached);
  EXPECT_NE(wrong, "") << "the bug was not noticed";
  RecordProperty("rejected_because", wrong);
}

TEST(CutRulesKept, TheSeedsPassWithoutABug) {
  CutReached reached;
  EXPECT_EQ(wrong_cuts(base::seed_from_environment(1000), 300, reached), "");
}

INSTANTIATE_TEST_SUITE_P(Each, CutRules,
                         ::testing::Values(Bug::cut_not_collected_again,
                                           Bug::hold_taken_for_granted, Bug::hold_version_not_asked,
                                           Bug::holds_left_standing));

}  // namespace
}  // namespace espalier::client

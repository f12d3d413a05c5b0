// SPDX-License-Identifier: Apache-2.0
// Some seed detects each broken rule of posts to peers.
#include <gtest/gtest.h>

#include <string>

#include "base/random.hpp"
#include "engine/planted_engine_bugs.hpp"
#include "engine/tests/testing/peer_posts_world.hpp"

namespace espalier::offload {
namespace {

std::string first_wrong_posts() {
  const std::uint64_t seed = base::seed_from_environment(73);
  std::string wrong;
  for (std::uint64_t i = 0; i < 20 && wrong.empty(); ++i) wrong = PeerPostsWorld(seed + i).run();
  return wrong;
}

class PeerPostsRules : public ::testing::TestWithParam<Bug> {};

TEST_P(PeerPostsRules, SomeSeedNoticesThatItIsBroken) {
  const base::Planted planted(GetParam());
  const std::string wrong = first_wrong_posts();
  EXPECT_NE(wrong, "") << "the bug was not noticed";
  RecordProperty("rejected_because", wrong);
}

TEST(PeerPostsRulesKept, TheSeedsPassWithoutABug) { EXPECT_EQ(first_wrong_posts(), ""); }

INSTANTIATE_TEST_SUITE_P(Each, PeerPostsRules,
                         ::testing::Values(Bug::peer_post_overtakes, Bug::peer_failure_believed));

}  // namespace
}  // namespace espalier::offload

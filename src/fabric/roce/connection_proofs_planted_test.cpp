// SPDX-License-Identifier: Apache-2.0
// The rules of peers that are not proven are broken one at a time, and a check notices.
#include <gtest/gtest.h>

#include "fabric/planted_fabric_bugs.hpp"
#include "fabric/roce/testing/connection_checks.hpp"

namespace espalier::fabric::roce {
namespace {

std::uint64_t asked_rules_seed() { return base::seed_from_environment(73); }

TEST(UnprovenPeerRules, ACookieOfAnybodyIsNoticed) {
  const base::Planted planted(Bug::cookie_of_anybody);
  EXPECT_EQ(only_its_cookie_brings_a_request_in(asked_rules_seed()), "another cookie is taken");
  EXPECT_EQ(a_cookie_is_good_for_a_time(asked_rules_seed()), "an old cookie is taken");
}

TEST(UnprovenPeerRules, AFloodOfAnswersIsNoticed) {
  const base::Planted planted(Bug::unproven_peer_flooded);
  EXPECT_NE(an_unproven_peer_gets_little(asked_rules_seed()), "");
}

TEST(UnprovenPeerRules, MessagesThatAreServedFirstAreNoticed) {
  const base::Planted planted(Bug::messages_served_first);
  EXPECT_NE(pairs_are_served_first(asked_rules_seed()), "");
}

TEST(UnprovenPeerRules, WithoutABugNothingIsNoticed) {
  EXPECT_EQ(only_its_cookie_brings_a_request_in(asked_rules_seed()), "");
  EXPECT_EQ(a_cookie_is_good_for_a_time(asked_rules_seed()), "");
  EXPECT_EQ(an_unproven_peer_gets_little(asked_rules_seed()), "");
  EXPECT_EQ(pairs_are_served_first(asked_rules_seed()), "");
}

}  // namespace
}  // namespace espalier::fabric::roce

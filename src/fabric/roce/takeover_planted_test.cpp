// SPDX-License-Identifier: Apache-2.0
// The checks of session takeover (takeover_test.cpp) notice each broken rule that keeps attackers
// out.
#include <gtest/gtest.h>

#include "fabric/planted_fabric_bugs.hpp"
#include "fabric/roce/testing/takeover_checks.hpp"

namespace espalier::fabric::roce::takeover {
namespace {

const IpAddress kLoopback = IpAddress::v4(127, 0, 0, 1);
constexpr std::uint64_t kPackets = 2000;

std::uint64_t takeover_seed() { return base::seed_from_environment(94); }

TEST(TakeoverRules, APeerOfAnyPortIsNoticed) {
  const base::Planted planted(Bug::peer_of_any_port);
  EXPECT_NE(known_but_for_the_port(takeover_seed(), kLoopback, 20000, kPackets), "");
}

TEST(TakeoverRules, AnswersThatTellOfPsnsAreNoticed) {
  const base::Planted planted(Bug::any_psn_in_window);
  EXPECT_EQ(psns_searched(takeover_seed(), kPackets), "a wrong PSN is answered");
}

TEST(TakeoverRules, WithoutABugNothingIsNoticed) {
  EXPECT_EQ(known_but_for_the_port(takeover_seed(), kLoopback, 20000, kPackets), "");
  EXPECT_EQ(psns_searched(takeover_seed(), kPackets), "");
}

}  // namespace
}  // namespace espalier::fabric::roce::takeover

// SPDX-License-Identifier: Apache-2.0
// The rules of links: each is broken in turn, and some seed of
// src/channel/rings/tests/fabric_seeds_test.cpp detects it.
#include <gtest/gtest.h>

#include <string>

#include "base/random.hpp"
#include "channel/rings/tests/testing/link_world.hpp"
#include "fabric/planted_fabric_bugs.hpp"

namespace espalier::client {
namespace {

constexpr std::uint64_t kLinkSeeds = 20;

/// The error of the first seed that finds one; empty: none does.
std::string first_wrong_link(std::uint64_t first_seed) {
  for (std::uint64_t i = 0; i < kLinkSeeds; ++i) {
    LinkReached reached;
    LinkWorldOptions options;
    options.way = i % 2 == 0 ? wire::LinkWay::write : wire::LinkWay::send;
    options.give_up_ms = 2'000;
    LinkWorld world(first_seed + i, options);
    const std::string wrong = world.run(reached);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

class LinkRules : public ::testing::TestWithParam<fabric::Bug> {};

TEST_P(LinkRules, SomeSeedNoticesThatItIsBroken) {
  const base::Planted planted(GetParam());
  const std::string wrong = first_wrong_link(base::seed_from_environment(1000));
  EXPECT_NE(wrong, "") << "the bug was not noticed";
  RecordProperty("rejected_because", wrong);
}

TEST(LinkRulesKept, TheSeedsPassWithoutABug) {
  EXPECT_EQ(first_wrong_link(base::seed_from_environment(1000)), "");
}

INSTANTIATE_TEST_SUITE_P(Each, LinkRules,
                         ::testing::Values(fabric::Bug::slots_not_mirrored_again,
                                           fabric::Bug::delivered_too_far,
                                           fabric::Bug::credit_without_delivery));

}  // namespace
}  // namespace espalier::client

// SPDX-License-Identifier: Apache-2.0
// A client of a node over a fabric loses nothing and has nothing done twice, whatever becomes of
// its queue pairs: random requests over simulated fabrics, one seed after another.
//
// 100 seeds; ESPALIER_SEEDS says how many instead (docs/testing.md).
#include <gtest/gtest.h>

#include <cstdlib>

#include "client/link_world.hpp"

namespace espalier::client {
namespace {

std::uint64_t seeds_wanted() {
  const char* const text = std::getenv("ESPALIER_SEEDS");
  return text == nullptr ? 100 : std::strtoull(text, nullptr, 0);
}

class LinkSeeds : public ::testing::TestWithParam<wire::LinkWay> {};

INSTANTIATE_TEST_SUITE_P(Ways, LinkSeeds,
                         ::testing::Values(wire::LinkWay::write, wire::LinkWay::send),
                         [](const auto& way) {
                           return std::string(way.param == wire::LinkWay::write ? "Write" : "Send");
                         });

TEST_P(LinkSeeds, EverythingIsDoneOnceWhateverBecomesOfThePairs) {
  const std::uint64_t first = base::seed_from_environment(1000);
  LinkReached reached;
  LinkWorldOptions options;
  options.way = GetParam();
  for (std::uint64_t i = 0; i < seeds_wanted(); ++i) {
    LinkWorld world(first + i, options);
    ASSERT_EQ(world.run(reached), "") << "seed " << first + i;
    ASSERT_EQ(world.engine().audit(), std::vector<std::string>{}) << "seed " << first + i;
  }
  EXPECT_GT(reached.resumed, 0u);
  EXPECT_GT(reached.node_resumed, 0u);
  EXPECT_GT(reached.lost_pairs, 0u);
  EXPECT_GT(reached.ring_full, 0u);
  EXPECT_GT(reached.long_messages, 0u);
}

}  // namespace
}  // namespace espalier::client

// SPDX-License-Identifier: Apache-2.0
// A client and nodes that do all they can (hostile_node.hpp), one seed after another.
//
// 1000 seeds; ESPALIER_SEEDS says how many instead (docs/testing.md).
#include <gtest/gtest.h>

#include <cstdlib>

#include "client/hostile_node_world.hpp"

namespace espalier::client {
namespace {

std::uint64_t seeds_wanted() {
  const char* const text = std::getenv("ESPALIER_SEEDS");
  return text == nullptr ? 1000 : std::strtoull(text, nullptr, 0);
}

class HostileNodeSeeds : public ::testing::TestWithParam<wire::LinkWay> {};

INSTANTIATE_TEST_SUITE_P(Ways, HostileNodeSeeds,
                         ::testing::Values(wire::LinkWay::write, wire::LinkWay::send),
                         [](const auto& way) {
                           return std::string(way.param == wire::LinkWay::write ? "Write" : "Send");
                         });

TEST_P(HostileNodeSeeds, EveryRequestEndsOnceAndTheEndIsFound) {
  const std::uint64_t first = base::seed_from_environment(6000);
  NodeReached reached;
  for (std::uint64_t i = 0; i < seeds_wanted(); ++i) {
    Choices choices(first + i);
    HostileNodeWorld world(choices, GetParam());
    ASSERT_EQ(world.run(reached), "") << "seed " << first + i;
  }
  EXPECT_GT(reached.opened, 0u);
  EXPECT_GT(reached.refused, 0u);
  EXPECT_GT(reached.answered, 0u);
  EXPECT_GT(reached.lost, 0u);
  EXPECT_GT(reached.resumed, 0u);
}

}  // namespace
}  // namespace espalier::client

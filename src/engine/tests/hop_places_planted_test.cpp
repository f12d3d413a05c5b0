// SPDX-License-Identifier: Apache-2.0
// The scene detects each broken rule of places by hops.
#include <gtest/gtest.h>

#include "engine/planted_engine_bugs.hpp"
#include "engine/tests/testing/hop_places_scene.hpp"

namespace espalier::offload {
namespace {

class HopPlacesRules : public ::testing::TestWithParam<Bug> {};

TEST_P(HopPlacesRules, ItIsNoticedThatOneIsBroken) {
  const base::Planted planted(GetParam());
  const std::string wrong = HopPlacesScene().run();
  EXPECT_NE(wrong, "") << "the bug was not noticed";
  RecordProperty("rejected_because", wrong);
}

TEST(HopPlacesRulesKept, TheScenePassesWithoutABug) { EXPECT_EQ(HopPlacesScene().run(), ""); }

INSTANTIATE_TEST_SUITE_P(Each, HopPlacesRules,
                         ::testing::Values(Bug::hops_wait_for_clients, Bug::hops_share_places));

}  // namespace
}  // namespace espalier::offload

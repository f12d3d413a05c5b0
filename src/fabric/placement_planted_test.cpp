// SPDX-License-Identifier: Apache-2.0
// A rule of WRITEs into persistent memory is broken, and a cache that loses what is in it shows
// that, over every transport. Without a bug nothing that was acknowledged is lost.
#include <gtest/gtest.h>

#include "fabric/planted_fabric_bugs.hpp"
#include "fabric/testing/lossy_cache.hpp"

namespace espalier::fabric {
namespace {

using enum PlacementPolicy;

class PlacementRules : public ::testing::TestWithParam<FabricTransport> {
 protected:
  /// What the first of some worlds loses that loses anything.
  [[nodiscard]] std::string lost(PlacementPolicy policy) const {
    std::string found;
    for (std::uint64_t i = 0; i < 5 && found.empty(); ++i) {
      found = lost_of_acknowledged(GetParam(), policy, seed + i);
    }
    return found;
  }
  const std::uint64_t seed = base::seed_from_environment(72);
};

TEST_P(PlacementRules, WhatIsAcknowledgedIsDurableWhereTheTransportSaysSo) {
  const auto link = GetParam().make(seed);
  ASSERT_TRUE(link->near().properties().write_is_durable);
  EXPECT_EQ(lost(adaptive), "") << "seed " << seed;
  EXPECT_EQ(lost(memory), "") << "seed " << seed;
}

TEST_P(PlacementRules, TheCacheLosesWhatWasStoredThroughIt) { EXPECT_NE(lost(cache), ""); }

TEST_P(PlacementRules, AnAcknowledgementBeforeTheFenceIsNoticed) {
  const base::Planted planted(Bug::acknowledged_before_fence);
  EXPECT_NE(lost(adaptive), "");
}

TEST_P(PlacementRules, PersistentMemoryThatIsWrittenThroughTheCacheIsNoticed) {
  const base::Planted planted(Bug::persistent_in_cache);
  EXPECT_NE(lost(adaptive), "");
}

INSTANTIATE_TEST_SUITE_P(Transports, PlacementRules, ::testing::ValuesIn(fabric_transports()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace espalier::fabric

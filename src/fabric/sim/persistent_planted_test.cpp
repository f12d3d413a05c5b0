// SPDX-License-Identifier: Apache-2.0
// A rule of WRITEs into persistent memory is broken, and a crash shows that.
#include <gtest/gtest.h>

#include "fabric/planted_fabric_bugs.hpp"
#include "fabric/sim/testing/persistent_checks.hpp"

namespace espalier::fabric::sim {
namespace {

std::string lost_in_a_crash() {
  const std::uint64_t seed = base::seed_from_environment(78);
  std::string found;
  for (std::uint64_t i = 0; i < 60 && found.empty(); ++i) {
    found = crash_under_writes(seed + i, PlacementPolicy::adaptive).lost;
  }
  return found;
}

TEST(SimPersistentRules, AnAcknowledgementBeforeTheFenceIsNoticed) {
  const base::Planted planted(Bug::acknowledged_before_fence);
  EXPECT_NE(lost_in_a_crash(), "");
}

TEST(SimPersistentRules, PersistentMemoryThatIsWrittenThroughTheCacheIsNoticed) {
  const base::Planted planted(Bug::persistent_in_cache);
  EXPECT_NE(lost_in_a_crash(), "");
}

TEST(SimPersistentRules, WithoutABugNothingIsNoticed) { EXPECT_EQ(lost_in_a_crash(), ""); }

}  // namespace
}  // namespace espalier::fabric::sim

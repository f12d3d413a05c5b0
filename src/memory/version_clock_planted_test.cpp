// SPDX-License-Identifier: Apache-2.0
// The checks of the version clock notice a clock that breaks a rule.
#include <gtest/gtest.h>

#include "memory/testing/release_hold_checks.hpp"

namespace espalier::memory {
namespace {

TEST(VersionClockPlanted, ReleasingOutOfOrderIsNoticed) {
  ASSERT_TRUE(releases_wait_for_earlier_versions());
  {
    const base::Planted planted(Bug::release_out_of_order);
    EXPECT_FALSE(releases_wait_for_earlier_versions());
  }
  EXPECT_TRUE(releases_wait_for_earlier_versions());
}

TEST(VersionClockPlanted, ReleasesBeforeTheRecordIsDurableAreNoticed) {
  ASSERT_TRUE(releases_wait_for_records());
  {
    const base::Planted planted(Bug::released_before_durable);
    EXPECT_FALSE(releases_wait_for_records());
  }
  EXPECT_TRUE(releases_wait_for_records());
}

TEST(VersionClockPlanted, AMarkThatReleasesNothingIsNoticed) {
  const base::Planted planted(Bug::rise_releases_nothing);
  EXPECT_FALSE(releases_wait_for_records());
}

TEST(VersionClockPlanted, HoldsThatHoldNothingAreNoticed) {
  ASSERT_TRUE(a_hold_keeps_versions_back());
  const base::Planted planted(Bug::hold_ignored);
  EXPECT_FALSE(a_hold_keeps_versions_back());
}

TEST(VersionClockPlanted, HoldsWithoutEndAreNoticed) {
  ASSERT_TRUE(a_hold_ends_by_itself());
  ASSERT_TRUE(holds_are_seldom());
  const base::Planted planted(Bug::holds_without_end);
  EXPECT_FALSE(a_hold_ends_by_itself());
  EXPECT_FALSE(holds_are_seldom());
}

TEST(VersionClockPlanted, HoldsThatEndInSilenceAreNoticed) {
  const base::Planted planted(Bug::hold_end_releases_nothing);
  EXPECT_FALSE(a_hold_ends_by_itself());
}

}  // namespace
}  // namespace espalier::memory

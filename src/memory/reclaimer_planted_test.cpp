// SPDX-License-Identifier: Apache-2.0
// The checks of the reclaimer notice one that frees too early.
#include <gtest/gtest.h>

#include "memory/planted_memory_bugs.hpp"
#include "memory/testing/reclaimer_checks.hpp"

namespace espalier::memory {
namespace {

TEST(ReclaimerPlanted, StampingAtTheUnlinkIsNoticed) {
  {
    const base::Planted planted(Bug::stamp_at_unlink);
    EXPECT_FALSE(waits_for_the_release());
  }
  EXPECT_TRUE(waits_for_the_release());
}

TEST(ReclaimerPlanted, ForgettingSnapshotsIsNoticed) {
  {
    const base::Planted planted(Bug::snapshot_not_held);
    EXPECT_FALSE(keeps_what_snapshots_need());
  }
  EXPECT_TRUE(keeps_what_snapshots_need());
}

TEST(ReclaimerPlanted, SnapshotsThatNeverYieldAreNoticed) {
  {
    const base::Planted planted(Bug::snapshots_never_yield);
    EXPECT_FALSE(gives_what_snapshots_hold());
  }
  EXPECT_TRUE(gives_what_snapshots_hold());
}

TEST(ReclaimerPlanted, FreeingUnderAWalkAtAnExpiringVersionIsNoticed) {
  {
    const base::Planted planted(Bug::expiry_not_stamped);
    EXPECT_FALSE(keeps_what_walks_at_expiring_versions_read());
  }
  EXPECT_TRUE(keeps_what_walks_at_expiring_versions_read());
}

TEST(ReclaimerPlanted, FreeingWhatIsPinnedIsNoticed) {
  {
    const base::Planted planted(Bug::pin_not_counted);
    EXPECT_FALSE(keeps_what_is_pinned());
  }
  EXPECT_TRUE(keeps_what_is_pinned());
}

TEST(ReclaimerPlanted, FreeingWhatALeaseNeedsIsNoticed) {
  {
    const base::Planted planted(Bug::lease_not_counted);
    EXPECT_FALSE(keeps_what_leases_need());
  }
  EXPECT_TRUE(keeps_what_leases_need());
}

}  // namespace
}  // namespace espalier::memory

// SPDX-License-Identifier: Apache-2.0
// The checks of the reclaimer notice one that frees too early.
#include <gtest/gtest.h>

#include "tree/node/planted_tree_bugs.hpp"
#include "tree/testing/reclaimer_checks.hpp"

namespace espalier::tree {
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

}  // namespace
}  // namespace espalier::tree

// SPDX-License-Identifier: Apache-2.0
// The checks of records notice a map that hands them over too late.
#include <gtest/gtest.h>

#include "kinds/map/node/planted_tree_bugs.hpp"
#include "kinds/map/testing/redo_maps.hpp"

namespace espalier::tree {
namespace {

TEST(WriteRedoPlanted, HandingOverOutsideTheLockIsNoticed) {
  for (const RedoWay way : kRedoWays) {
    SCOPED_TRACE(static_cast<int>(way));
    ASSERT_TRUE(records_come_under_the_lock(way));
    {
      const base::Planted planted(Bug::record_outside_lock);
      EXPECT_FALSE(records_come_under_the_lock(way));
    }
    EXPECT_TRUE(records_come_under_the_lock(way));
  }
}

TEST(WriteRedoPlanted, HandingOverWhatIsReleasedIsNoticed) {
  ASSERT_TRUE(records_come_before_their_release());
  {
    const base::Planted planted(Bug::record_after_release);
    EXPECT_FALSE(records_come_before_their_release());
  }
  EXPECT_TRUE(records_come_before_their_release());
}

TEST(WriteRedoPlanted, ReleasingWhatACrashCanLoseIsNoticed) {
  ASSERT_TRUE(readers_see_what_is_durable());
  {
    const base::Planted planted(memory::Bug::released_before_durable);
    EXPECT_FALSE(readers_see_what_is_durable());
  }
  EXPECT_TRUE(readers_see_what_is_durable());
}

}  // namespace
}  // namespace espalier::tree

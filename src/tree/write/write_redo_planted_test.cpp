// SPDX-License-Identifier: Apache-2.0
// The checks of records notice a map that hands them over too late.
#include <gtest/gtest.h>

#include "tree/node/planted_tree_bugs.hpp"
#include "tree/testing/redo_maps.hpp"

namespace espalier::tree {
namespace {

TEST(WriteRedoPlanted, HandingOverOutsideTheLockIsNoticed) {
  ASSERT_TRUE(records_come_under_the_lock());
  {
    const base::Planted planted(Bug::record_outside_lock);
    EXPECT_FALSE(records_come_under_the_lock());
  }
  EXPECT_TRUE(records_come_under_the_lock());
}

TEST(WriteRedoPlanted, HandingOverWhatIsReleasedIsNoticed) {
  ASSERT_TRUE(records_come_before_their_release());
  {
    const base::Planted planted(Bug::record_after_release);
    EXPECT_FALSE(records_come_before_their_release());
  }
  EXPECT_TRUE(records_come_before_their_release());
}

}  // namespace
}  // namespace espalier::tree

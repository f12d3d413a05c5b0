// SPDX-License-Identifier: Apache-2.0
// The checks of groups' versions notice a map that gives them wrongly.
#include <gtest/gtest.h>

#include "kinds/map/testing/group_writes.hpp"

namespace espalier::tree {
namespace {

TEST(GroupWritesPlanted, TwoPutsOfOneKeyUnderOneVersionAreNoticed) {
  ASSERT_TRUE(each_put_has_its_version());
  {
    const base::Planted planted(Bug::one_version_for_two_puts);
    EXPECT_FALSE(each_put_has_its_version());
  }
  EXPECT_TRUE(each_put_has_its_version());
}

TEST(GroupWritesPlanted, LocksThatAreTakenAfterTheVersionAreNoticed) {
  ASSERT_TRUE(groups_take_versions_under_locks());
  {
    const base::Planted planted(Bug::version_before_lock);
    EXPECT_FALSE(groups_take_versions_under_locks());
  }
  EXPECT_TRUE(groups_take_versions_under_locks());
}

}  // namespace
}  // namespace espalier::tree

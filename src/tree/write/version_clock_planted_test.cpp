// SPDX-License-Identifier: Apache-2.0
// The checks of the version clock notice a clock that releases out of order.
#include <gtest/gtest.h>

#include "tree/testing/version_clock_checks.hpp"

namespace espalier::tree {
namespace {

TEST(VersionClockPlanted, ReleasingOutOfOrderIsNoticed) {
  ASSERT_TRUE(releases_wait_for_earlier_versions());
  {
    const base::Planted planted(Bug::release_out_of_order);
    EXPECT_FALSE(releases_wait_for_earlier_versions());
  }
  EXPECT_TRUE(releases_wait_for_earlier_versions());
}

}  // namespace
}  // namespace espalier::tree

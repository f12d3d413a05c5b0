// SPDX-License-Identifier: Apache-2.0
// Tables that keep a moved leaf's old address are detected.
#include <gtest/gtest.h>

#include "dataplane/planted_dataplane_bugs.hpp"
#include "index/testing/followed_index.hpp"

namespace espalier::place {
namespace {

// Keys that the tables lead astray, after the moves were applied.
std::uint64_t astray_after_moves() {
  base::Random random(base::seed_from_environment(19));
  FollowedIndex index;
  EXPECT_TRUE(index.move_some(random, 600));
  return index.astray();
}

TEST(IndexFollowerPlanted, AnEntryOfALeafThatHasMovedIsNoticed) {
  EXPECT_EQ(astray_after_moves(), 0u);
  const base::Planted planted(dataplane::Bug::moved_leaf_kept);
  EXPECT_GT(astray_after_moves(), 0u);
}

}  // namespace
}  // namespace espalier::place

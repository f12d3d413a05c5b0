// SPDX-License-Identifier: Apache-2.0
// The checks of feeds notice a writer that tells a change before the page table has it, and a
// reader that takes halves of two entries for one.
#include <gtest/gtest.h>

#include "kinds/map/remote/testing/feed_checks.hpp"

namespace espalier::place {
namespace {

TEST(FeedCursorPlanted, AChangeThatIsToldTooEarlyIsNoticed) {
  EXPECT_TRUE(knows_a_change_of_its_beginning());
  {
    const base::Planted planted(tree::Bug::feed_before_table);
    EXPECT_FALSE(knows_a_change_of_its_beginning());
  }
  EXPECT_TRUE(knows_a_change_of_its_beginning());
}

TEST(FeedCursorPlanted, HalvesThatAreTakenAreNoticed) {
  FeedTable table(8);
  FeedReader reader = table.follow();
  reader.catch_up();
  for (std::uint32_t i = 0; i < wire::kFeedEntries; ++i) table.move(i % 8, i + 1);
  reader.catch_up();
  EXPECT_EQ(halves_taken(table, reader, 10'000), 0u);
  reader.catch_up();
  const base::Planted planted(tree::Bug::feed_check_ignored);
  EXPECT_NE(halves_taken(table, reader, 10'001), 0u);
}

}  // namespace
}  // namespace espalier::place

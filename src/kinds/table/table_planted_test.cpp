// SPDX-License-Identifier: Apache-2.0
// The checks of tables notice one that counts rows too early, reads its source twice, uses a
// counter block twice, or hands a record over too late.
#include <gtest/gtest.h>

#include "kinds/table/planted_table_bugs.hpp"
#include "kinds/table/testing/encrypted_checks.hpp"
#include "kinds/table/testing/redo_tables.hpp"
#include "kinds/table/testing/table_checks.hpp"

namespace espalier::table {
namespace {

TEST(TablePlanted, RowsCountedBeforeTheyAreCompleteAreNoticed) {
  ASSERT_TRUE(scans_see_whole_appends(5, 2000));
  {
    const base::Planted planted(Bug::rows_counted_early);
    EXPECT_FALSE(scans_see_whole_appends(60, 2000));
  }
  EXPECT_TRUE(scans_see_whole_appends(5, 2000));
}

TEST(TablePlanted, ASourceThatIsReadTwiceIsNoticed) {
  ASSERT_TRUE(appended_rows_are_those_checked(2000));
  {
    const base::Planted planted(Bug::source_read_twice);
    EXPECT_FALSE(appended_rows_are_those_checked(3'000'000));
  }
  EXPECT_TRUE(appended_rows_are_those_checked(2000));
}

TEST(TablePlanted, ACounterBlockThatIsUsedTwiceIsNoticed) {
  ASSERT_EQ(difference_in_reservations(1, 300), "");
  {
    const base::Planted planted(Bug::slot_given_twice);
    EXPECT_NE(difference_in_reservations(1, 300), "");
  }
  EXPECT_EQ(difference_in_reservations(1, 300), "");
}

TEST(TablePlanted, RowsThatACrashCanLoseAreNoticed) {
  ASSERT_TRUE(rows_are_visible_once_they_are_durable());
  {
    const base::Planted planted(Bug::rows_before_durable);
    EXPECT_FALSE(rows_are_visible_once_they_are_durable());
  }
  EXPECT_TRUE(rows_are_visible_once_they_are_durable());
}

TEST(TablePlanted, HandingOverWhatIsVisibleIsNoticed) {
  ASSERT_TRUE(records_come_before_their_rows());
  {
    const base::Planted planted(Bug::record_after_publish);
    EXPECT_FALSE(records_come_before_their_rows());
  }
  EXPECT_TRUE(records_come_before_their_rows());
}

}  // namespace
}  // namespace espalier::table

// SPDX-License-Identifier: Apache-2.0
// The checks of embedding tables notice one that believes torn rows, leaves sequences as they are,
// counts rows too early, hands a record over too late, or reads sums that are not of
// their rows.
#include <gtest/gtest.h>

#include "kinds/embedding/planted_embedding_bugs.hpp"
#include "kinds/embedding/testing/grouped_rows.hpp"
#include "kinds/embedding/testing/whole_rows.hpp"

namespace espalier::embedding {
namespace {

TEST(EmbeddingPlanted, ATornRowThatIsBelievedIsNoticed) {
  ASSERT_TRUE(row_replaced_midway_is_whole());
  ASSERT_TRUE(small_row_replaced_midway_is_whole());
  for (const Bug bug : {Bug::torn_row_believed, Bug::sequence_not_moved}) {
    const base::Planted planted(bug);
    EXPECT_FALSE(row_replaced_midway_is_whole());
    EXPECT_FALSE(small_row_replaced_midway_is_whole());
  }
  EXPECT_TRUE(row_replaced_midway_is_whole());
}

TEST(EmbeddingPlanted, RowsThatAreCountedEarlyAreNoticed) {
  ASSERT_TRUE(records_come_before_rows());
  for (const Bug bug : {Bug::rows_counted_early, Bug::record_after_publish}) {
    const base::Planted planted(bug);
    EXPECT_FALSE(records_come_before_rows());
  }
  EXPECT_TRUE(records_come_before_rows());
}

TEST(EmbeddingPlanted, RowsThatAreSeenBeforeTheyAreDurableAreNoticed) {
  ASSERT_TRUE(rows_are_seen_once_they_are_durable());
  {
    const base::Planted planted(Bug::rows_before_durable);
    EXPECT_FALSE(rows_are_seen_once_they_are_durable());
  }
  EXPECT_TRUE(rows_are_seen_once_they_are_durable());
}

TEST(EmbeddingPlanted, ATableThatIsWrittenByAnOldNameIsNoticed) {
  ASSERT_TRUE(nothing_is_written_by_an_old_name());
  {
    const base::Planted planted(Bug::name_asked_once);
    EXPECT_FALSE(nothing_is_written_by_an_old_name());
  }
  EXPECT_TRUE(nothing_is_written_by_an_old_name());
}

TEST(EmbeddingPlanted, ASumThatIsUsedAfterItsRowHasChangedIsNoticed) {
  ASSERT_TRUE(sums_follow_replacements());
  {
    const base::Planted planted(Bug::sums_not_recomputed);
    EXPECT_FALSE(sums_follow_replacements());
  }
  EXPECT_TRUE(sums_follow_replacements());
  ASSERT_TRUE(sum_replaced_midway_is_whole());
  for (const Bug bug : {Bug::group_not_unmemoised, Bug::old_sums_believed}) {
    const base::Planted planted(bug);
    EXPECT_FALSE(sum_replaced_midway_is_whole());
  }
  EXPECT_TRUE(sum_replaced_midway_is_whole());
}

TEST(EmbeddingPlanted, SumsThatDoNotFollowDurableRowsAreNoticed) {
  ASSERT_TRUE(sums_follow_durable_replacements());
  for (const Bug bug :
       {Bug::group_not_unmemoised, Bug::sums_not_recomputed, Bug::one_store_counted}) {
    const base::Planted planted(bug);
    EXPECT_FALSE(sums_follow_durable_replacements());
  }
  EXPECT_TRUE(sums_follow_durable_replacements());
}

TEST(EmbeddingPlanted, WrongSumsOfGroupsAreNoticed) {
  ASSERT_TRUE(sums_are_of_their_rows());
  for (const Bug bug : {Bug::group_border_off_by_one, Bug::repeated_id_once}) {
    const base::Planted planted(bug);
    EXPECT_FALSE(sums_are_of_their_rows());
  }
  EXPECT_TRUE(sums_are_of_their_rows());
}

}  // namespace
}  // namespace espalier::embedding

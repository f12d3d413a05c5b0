// SPDX-License-Identifier: Apache-2.0
// The checks of embedding tables notice one that believes torn rows, leaves sequences as they are,
// counts rows too early, or hands a record over too late.
#include <gtest/gtest.h>

#include "kinds/embedding/planted_embedding_bugs.hpp"
#include "kinds/embedding/testing/whole_rows.hpp"

namespace espalier::embedding {
namespace {

TEST(EmbeddingPlanted, ATornRowThatIsBelievedIsNoticed) {
  ASSERT_TRUE(row_replaced_midway_is_whole());
  for (const Bug bug : {Bug::torn_row_believed, Bug::sequence_not_moved}) {
    const base::Planted planted(bug);
    EXPECT_FALSE(row_replaced_midway_is_whole());
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

}  // namespace
}  // namespace espalier::embedding

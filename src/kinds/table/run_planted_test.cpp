// SPDX-License-Identifier: Apache-2.0
// The checks of runs notice nulls that count as zero, and groups that are lost when they do not
// fit.
#include <gtest/gtest.h>

#include "kinds/table/planted_table_bugs.hpp"
#include "kinds/table/testing/run_checks.hpp"

namespace espalier::table {
namespace {

TEST(RunPlanted, ANullTreatedAsZeroIsNoticed) {
  SeenInRuns seen;
  base::Random random(1);
  ASSERT_EQ(difference_in_rounds(random, 10, seen), "");
  {
    const base::Planted planted(Bug::null_is_zero);
    EXPECT_NE(difference_in_rounds(random, 10, seen), "");
  }
  EXPECT_EQ(difference_in_rounds(random, 10, seen), "");
}

TEST(RunPlanted, AGroupThatIsLostWhenItDoesNotFitIsNoticed) {
  SeenInRuns seen;
  base::Random random(2);
  ASSERT_EQ(difference_in_little_memory(random, 10, seen), "");
  {
    const base::Planted planted(Bug::overflow_group_lost);
    EXPECT_NE(difference_in_little_memory(random, 20, seen), "");
  }
  EXPECT_EQ(difference_in_little_memory(random, 10, seen), "");
}

}  // namespace
}  // namespace espalier::table

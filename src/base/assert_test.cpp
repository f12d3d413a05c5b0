// SPDX-License-Identifier: Apache-2.0
#include "base/assert.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace {

TEST(AssertDeathTest, PrintsTheConditionAndWhereItStands) {
  EXPECT_DEATH(ESPALIER_ASSERT(1 + 1 == 3),
               "assert_test\\.cpp:[0-9]+: .*assertion failed: 1 \\+ 1 == 3");
}

TEST(Assert, HoldsQuietly) { ESPALIER_ASSERT(1 + 1 == 2); }

TEST(Assert, TakesConditionsWithCommas) {
  ESPALIER_ASSERT(std::pair<int, int>{1, 2} == std::pair<int, int>{1, 2});
}

TEST(AssertDeathTest, DebugAssertionRunsItsConditionOnlyWhereItIsOn) {
  if constexpr (espalier::base::kDebugAssertions) {
    EXPECT_DEATH(ESPALIER_DEBUG_ASSERT(false), "assertion failed: false");
  } else {
    int calls = 0;
    ESPALIER_DEBUG_ASSERT(++calls > 0);
    EXPECT_EQ(calls, 0);
  }
}

}  // namespace

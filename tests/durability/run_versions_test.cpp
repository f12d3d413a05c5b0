// SPDX-License-Identifier: Apache-2.0
#include "tests/durability/run_versions.hpp"

#include <gtest/gtest.h>

namespace espalier::test {
namespace {

TEST(RunVersions, NoneComesAgainAfterItsWriteIsLost) { EXPECT_EQ(version_that_came_again(), ""); }

TEST(RunVersions, ThoseOfARecoveryStandInARecord) {
  EXPECT_EQ(recovered_version_that_came_again(), "");
}

TEST(RunVersions, BeginAboveThoseOfEarlierRuns) {
  EXPECT_GT(offload::versions_before_run(1), 0u);
  for (std::uint64_t run = 1; run < 100; ++run) {
    EXPECT_EQ(offload::versions_before_run(run + 1) - offload::versions_before_run(run),
              std::uint64_t{1} << 42);
  }
  EXPECT_LT(offload::versions_before_run(~std::uint64_t{0}), ~std::uint64_t{0} >> 1);
}

}  // namespace
}  // namespace espalier::test

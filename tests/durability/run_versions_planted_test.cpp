// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "engine/planted_engine_bugs.hpp"
#include "tests/durability/run_versions.hpp"

namespace espalier::test {
namespace {

TEST(RunVersionsPlanted, AVersionOfAnEarlierRunIsNoticed) {
  EXPECT_EQ(version_that_came_again(), "");
  const base::Planted planted(offload::Bug::versions_of_earlier_runs);
  EXPECT_NE(version_that_came_again(), "");
}

TEST(RunVersionsPlanted, AVersionOfARecoveryThatIsNotRecordedIsNoticed) {
  EXPECT_EQ(recovered_version_that_came_again(), "");
  const base::Planted planted(offload::Bug::recovered_versions_unrecorded);
  EXPECT_NE(recovered_version_that_came_again(), "");
}

}  // namespace
}  // namespace espalier::test

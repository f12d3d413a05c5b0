// SPDX-License-Identifier: Apache-2.0
#include "tests/durability/run_versions.hpp"

#include <gtest/gtest.h>

namespace espalier::test {
namespace {

TEST(RunVersions, NoneComesAgainAfterItsWriteIsLost) { EXPECT_EQ(version_that_came_again(), ""); }

TEST(RunVersions, ThoseOfARecoveryStandInARecord) {
  EXPECT_EQ(recovered_version_that_came_again(), "");
}

// As of records that the head of a chain has made.
TEST(RunVersions, GoOnAboveThoseOfALogWithMoreRuns) {
  tree::StoreCore core = tree::make_store();
  const offload::Services services(core, std::uint64_t{64} << 20);
  EXPECT_EQ(offload::run_of_recovered(services), 1u);
  const auto map = *tree::create_map(core, "map", {});
  map->clock.go_on_above(offload::versions_before_run(7) + 5);
  const std::uint64_t run = offload::run_of_recovered(services);
  EXPECT_EQ(run, 7u);
  EXPECT_GT(offload::versions_before_run(run + 1), map->clock.taken());
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

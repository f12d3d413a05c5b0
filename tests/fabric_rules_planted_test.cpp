// SPDX-License-Identifier: Apache-2.0
// The rules of `roce`: each is broken in turn, and some seed of
// src/fabric/roce/protocol_seeds_test.cpp detects it.
#include <gtest/gtest.h>

#include <string>

#include "base/random.hpp"
#include "fabric/planted_fabric_bugs.hpp"
#include "fabric/roce/testing/protocol_world.hpp"

namespace espalier::fabric::roce::workload {
namespace {

constexpr std::uint64_t kSeeds = 20;

/// The error of the first seed that finds one; empty: none does.
std::string first_wrong(std::uint64_t first_seed) {
  Reached reached;
  for (std::uint64_t i = 0; i < kSeeds; ++i) {
    const std::string wrong = World(first_seed + i, {}).run(reached);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

class FabricRules : public ::testing::TestWithParam<Bug> {};

TEST_P(FabricRules, SomeSeedNoticesThatItIsBroken) {
  const base::Planted planted(GetParam());
  const std::string wrong = first_wrong(base::seed_from_environment(1000));
  EXPECT_NE(wrong, "") << "the bug was not noticed";
  RecordProperty("rejected_because", wrong);
}

TEST(FabricRulesKept, TheSeedsPassWithoutABug) {
  EXPECT_EQ(first_wrong(base::seed_from_environment(1000)), "");
}

INSTANTIATE_TEST_SUITE_P(Each, FabricRules,
                         ::testing::Values(Bug::atomic_done_again, Bug::gap_accepted,
                                           Bug::acknowledgement_is_answer,
                                           Bug::read_resumes_elsewhere,
                                           Bug::not_ready_takes_message));

}  // namespace
}  // namespace espalier::fabric::roce::workload

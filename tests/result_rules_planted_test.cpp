// SPDX-License-Identifier: Apache-2.0
// Rules of results: rows are in place before the message that names their place, even if a pair
// failed in between. Each is broken in turn, and some seed of
// src/kinds/table/client/result_seeds_test.cpp detects it.
#include <gtest/gtest.h>

#include <string>

#include "base/random.hpp"
#include "fabric/planted_fabric_bugs.hpp"
#include "kinds/table/client/testing/result_world.hpp"

namespace espalier::client {
namespace {

constexpr std::uint64_t kResultSeeds = 40;

/// The error of the first seed that finds one; empty: none does.
std::string first_wrong_result(std::uint64_t first_seed) {
  for (std::uint64_t i = 0; i < kResultSeeds; ++i) {
    ResultsReached reached;
    LinkWorldOptions options;
    options.way = i % 2 == 0 ? wire::LinkWay::write : wire::LinkWay::send;
    options.give_up_ms = 2'000;
    ResultWorld world(first_seed + i, options);
    const std::string wrong = world.run(8, reached);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

class ResultRules : public ::testing::TestWithParam<fabric::Bug> {};

TEST_P(ResultRules, SomeSeedNoticesThatItIsBroken) {
  const base::Planted planted(GetParam());
  const std::string wrong = first_wrong_result(base::seed_from_environment(1000));
  EXPECT_NE(wrong.find("other rows"), std::string::npos) << wrong;
  RecordProperty("rejected_because", wrong);
}

TEST(ResultRulesKept, TheSeedsPassWithoutABug) {
  EXPECT_EQ(first_wrong_result(base::seed_from_environment(1000)), "");
}

INSTANTIATE_TEST_SUITE_P(Each, ResultRules,
                         ::testing::Values(fabric::Bug::result_told_first,
                                           fabric::Bug::result_not_written_again));

}  // namespace
}  // namespace espalier::client

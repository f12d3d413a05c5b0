// SPDX-License-Identifier: Apache-2.0
// The worlds notice a log that breaks a rule.
#include <gtest/gtest.h>

#include "log/planted_log_bugs.hpp"
#include "log/testing/log_world.hpp"

namespace espalier::log {
namespace {

/// What is wrong in the first of these worlds in which something is.
std::string first_wrong(const WorldTerms& terms) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const WorldResult result = run_world(seed, terms);
    if (!result.wrong.empty()) return result.wrong;
  }
  return {};
}

void expect_noticed(Bug bug, const WorldTerms& terms = {}) {
  {
    const base::Planted planted(bug);
    const std::string wrong = first_wrong(terms);
    EXPECT_NE(wrong, "");
    ::testing::Test::RecordProperty("wrong", wrong);
  }
  EXPECT_EQ(first_wrong(terms), "");
}

WorldTerms with_flips() {
  WorldTerms terms;
  terms.flips = true;
  return terms;
}

TEST(LogPlanted, AcknowledgingBeforeTheFlushIsNoticed) { expect_noticed(Bug::acknowledged_early); }

TEST(LogPlanted, ReplayingAStaleBlockAfterASecondCrashIsNoticed) {
  WorldTerms terms;
  terms.alike = true;  // so that the old block is where the new ones end
  expect_noticed(Bug::goes_on_in_old_segment, terms);
}

TEST(LogPlanted, NotLookingAtChecksumsIsNoticed) {
  expect_noticed(Bug::checksum_ignored, with_flips());
}

TEST(LogPlanted, RemovingASegmentEarlyIsNoticed) { expect_noticed(Bug::removed_early); }

TEST(LogPlanted, BelievingWhatIsNotYetFlushedIsNoticed) {
  expect_noticed(Bug::recovered_unflushed);
}

TEST(LogPlanted, CuttingAHoleIsNoticed) { expect_noticed(Bug::hole_cut, with_flips()); }

TEST(LogPlanted, AcknowledgingAfterAFailureIsNoticed) {
  WorldTerms terms;
  terms.faults.fails = 0.05;
  expect_noticed(Bug::acknowledged_after_failure, terms);
}

}  // namespace
}  // namespace espalier::log

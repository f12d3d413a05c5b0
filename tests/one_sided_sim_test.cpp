// SPDX-License-Identifier: Apache-2.0
// Clients that walk a map alone, in a simulated fabric: READs torn at lines, late, repeated and
// reordered, while the host writes, reuses memory at once, pauses, and loses patience with leases.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "fabric/testing/seeds.hpp"
#include "tests/support/one_sided_world.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {
namespace {

void run_seeds(const OneSidedOptions& options, std::uint64_t usually, OneSidedCounts& counts) {
  const std::uint64_t first = seed_from_environment(1);
  fabric::Seeds seeds(scaled(usually));
  for (std::uint64_t i = 0; i < seeds.count(); ++i) {
    SCOPED_TRACE(seed_text(first + i));
    ASSERT_EQ(run_one_sided(first + i, options, counts), "");
    seeds.done();
  }
  seeds.report("answers", counts.answers);
  seeds.report("walks that began again", counts.restarts);
  seeds.report("leases lost", counts.leases_lost);
}

TEST(OneSidedSim, AnswersAreRightInGoodWeather) {
  OneSidedCounts counts;
  OneSidedOptions options;
  options.pauses = false;
  run_seeds(options, 20, counts);
  EXPECT_EQ(counts.refused, 0u);
  EXPECT_GT(counts.long_values, 0u);
}

TEST(OneSidedSim, AnswersAreRightInBadWeather) {
  OneSidedCounts counts;
  OneSidedOptions options;
  options.faults = fabric::sim::Faults::harsh();
  run_seeds(options, 40, counts);
  EXPECT_GT(counts.answers, counts.refused);
  EXPECT_GT(counts.torn_reads, 0u);
  EXPECT_GT(counts.reads_reordered, 0u);
  EXPECT_GT(counts.restarts, 0u);
  EXPECT_GT(counts.leases_lost, 0u);
  EXPECT_GT(counts.long_values, 0u);
}

TEST(OneSidedSim, AnswersAreRightWhereReadsKeepTheirOrder) {
  OneSidedCounts counts;
  OneSidedOptions options;
  options.faults = fabric::sim::Faults::harsh();
  options.faults.reads_in_order = true;
  run_seeds(options, 20, counts);
  EXPECT_EQ(counts.reads_reordered, 0u);
}

TEST(OneSidedSim, LargeNodes) {
  OneSidedCounts counts;
  OneSidedOptions options;
  options.map = {.node_bytes = 8192, .log_bytes = 512};
  options.keys = 600;
  options.faults = fabric::sim::Faults::harsh();
  run_seeds(options, 10, counts);
}

// A host that forgets leases, and does not say so: generations tell what was used again.
TEST(OneSidedSim, NoAnswerIsWrongWhereLeasesKeepNothing) {
  OneSidedCounts counts;
  OneSidedOptions options;
  options.map = {.node_bytes = 8192, .log_bytes = 512};
  options.keys = 6;
  options.one_in_long = 1;
  options.faults.tear = 1;
  options.faults.tear_ns = {200, 30'000};
  options.reads = 100;
  options.keeps_leases = false;
  run_seeds(options, 20, counts);
  EXPECT_GT(counts.met_changes, 0u);
  EXPECT_GT(counts.answers, counts.refused);
}

// Its readers are told that it is gone; none of them is answered from its memory afterwards.
TEST(OneSidedSim, ADroppedMapIsSeenToBeGone) {
  OneSidedCounts counts;
  OneSidedOptions options;
  options.drop = true;
  run_seeds(options, 10, counts);
  EXPECT_GT(counts.refused, 0u);
}

}  // namespace
}  // namespace espalier::test

// SPDX-License-Identifier: Apache-2.0
// Threads on one map, with their histories checked: long ones by a replay of versions, many short
// ones also by a search for a linearization. ESPALIER_SEED repeats the choices, but not the
// schedule.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/seed.hpp"
#include "tests/support/store.hpp"
#include "tests/support/workload.hpp"

namespace espalier::test {
namespace {

constexpr KeyPattern kPatterns[] = {KeyPattern::dense, KeyPattern::same_first_16,
                                    KeyPattern::nested, KeyPattern::short_and_long};

class LinearizabilityConcurrency : public ::testing::TestWithParam<KeyPattern> {
 protected:
  // Runs a workload in a map of its own and reports its concurrency.
  void run(const MapOptions& map_options, const WorkloadOptions& options) {
    SCOPED_TRACE(seed_text(options.seed));
    Store store = open_store();
    auto map = store.create_map("map", map_options);
    ASSERT_TRUE(map) << message(map.error());
    ASSERT_EQ(run_and_check(*map, options, &report_).value_or(""), "");
    RecordProperty("operations", std::to_string(report_.operations));
    RecordProperty("overlapping", std::to_string(report_.overlapping));
    RecordProperty("searched", std::to_string(report_.searched));
    RecordProperty("unknown", std::to_string(report_.unknown));
    // Threads that run in sequence would prove nothing.
    EXPECT_GT(report_.overlapping, 0u);
  }

  static WorkloadOptions options_of(KeyPattern pattern, std::uint64_t seed) {
    WorkloadOptions options;
    options.pattern = pattern;
    options.seed = seed_from_environment(seed + static_cast<std::uint64_t>(pattern));
    return options;
  }

  WorkloadReport report_;
};

std::string pattern_name(const ::testing::TestParamInfo<KeyPattern>& info) {
  return std::string(name(info.param));
}

TEST_P(LinearizabilityConcurrency, LongHistories) {
  WorkloadOptions options = options_of(GetParam(), 51);
  options.threads = 4;
  options.pipelines = 2;
  options.operations = steps_or(scaled(6000));
  options.rounds = 2;
  run({.node_bytes = 512, .log_bytes = 128}, options);
}

TEST_P(LinearizabilityConcurrency, LongHistoriesWithoutLogs) {
  WorkloadOptions options = options_of(GetParam(), 52);
  options.threads = 3;
  options.pipelines = 1;
  options.operations = steps_or(scaled(4000));
  run({.node_bytes = 512, .log_bytes = 0}, options);
}

// In nodes of the default size most writes go to the log of one leaf: threads meet in it.
TEST_P(LinearizabilityConcurrency, LongHistoriesInOneLeaf) {
  WorkloadOptions options = options_of(GetParam(), 53);
  options.threads = 4;
  options.pipelines = 1;
  options.operations = steps_or(scaled(4000));
  options.keys = 12;
  run({}, options);
}

TEST_P(LinearizabilityConcurrency, ManyShortHistories) {
  WorkloadOptions options = options_of(GetParam(), 54);
  options.keys = 14;
  options.threads = 4;
  options.pipelines = 1;
  options.in_flight = 4;
  options.operations = 30;
  options.operations_per_phase = 15;
  options.rounds = static_cast<std::uint32_t>(steps_or(scaled(400)));
  options.search = true;
  run({.node_bytes = 512, .log_bytes = 64}, options);
  EXPECT_LE(report_.unknown, report_.histories / 10);
}

// Without versions single keys are still linearizable; only a search can show it.
TEST_P(LinearizabilityConcurrency, VersionsOff) {
  WorkloadOptions options = options_of(GetParam(), 55);
  options.keys = 14;
  options.threads = 4;
  options.pipelines = 1;
  options.in_flight = 4;
  options.operations = 30;
  options.operations_per_phase = 15;
  options.rounds = static_cast<std::uint32_t>(steps_or(scaled(400)));
  options.batches = false;
  options.search = true;
  run({.node_bytes = 512, .log_bytes = 64, .versions = false}, options);
  EXPECT_LE(report_.unknown, report_.histories / 10);
}

INSTANTIATE_TEST_SUITE_P(Keys, LinearizabilityConcurrency, ::testing::ValuesIn(kPatterns),
                         pattern_name);

}  // namespace
}  // namespace espalier::test

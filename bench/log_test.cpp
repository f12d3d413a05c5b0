// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <stdexcept>

#include "bench/benchmark.hpp"
#include "bench/run_log.hpp"
#include "bench/run_recovery.hpp"
#include "bench/testing/json_number.hpp"
#include "bench/testing/point_lines.hpp"

namespace espalier::bench {
namespace {

LogBenchOptions tiny_log() {
  LogBenchOptions options;
  options.repeats = 1;
  options.ops = 256;
  options.keys = 500;
  options.record_bytes = {100};
  options.writers = {1, 3};
  options.in_flight = {1, 8};
  options.probe_rounds = 0;
  options.json = true;
  return options;
}

PointLines log_lines(const LogBenchOptions& options) {
  return slots_of("log", [&](const Output& output) { return run_benchmark(options, output); });
}

TEST(RunLogConcurrency, EveryRecordIsReadAgain) {
  LogBenchOptions options = tiny_log();
  options.experiments = {"commit"};
  const PointLines lines = log_lines(options);
  EXPECT_EQ(lines.exit_code, 0);
  EXPECT_EQ(lines.runs_with("target", "log").size(), 4u);
  EXPECT_EQ(lines.runs_with("target", "rocksdb").size(), 2u);
  EXPECT_EQ(lines.runs_with("target", "disk").size(), 2u);
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
  for (const Json& line : lines.runs) {
    EXPECT_EQ(line.at("ops"), 256);
    EXPECT_GT(number(line, "ns_p50"), 0);
    EXPECT_LE(line.at("ns_p50"), line.at("ns_p999"));
  }
  for (const Json& line : lines.runs_with("target", "log")) {
    EXPECT_GT(number(line, "written_bytes_per_op"), 100);
  }
}

TEST(RunLogConcurrency, RecordsThatComeApartAreReadAgain) {
  LogBenchOptions options = tiny_log();
  options.experiments = {"apart"};
  options.writes = {1, 8};
  options.gap_us = {10};
  const PointLines lines = log_lines(options);
  EXPECT_EQ(lines.exit_code, 0);
  ASSERT_EQ(lines.runs.size(), 2u);
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
  for (const Json& line : lines.runs) {
    EXPECT_EQ(line.at("ops"), 256);
    EXPECT_GT(number(line, "ns_p50"), 0);
    EXPECT_GT(number(line, "written_bytes_per_op"), 100);
  }
}

TEST(RunLogConcurrency, NodesWithADataFolderHaveTheSamePairs) {
  LogBenchOptions options = tiny_log();
  options.experiments = {"pairs"};
  const PointLines lines = log_lines(options);
  EXPECT_EQ(lines.exit_code, 0);
  ASSERT_EQ(lines.runs.size(), 6u);
  EXPECT_EQ(lines.runs_with("durability", "sync").size(), 2u);
  EXPECT_EQ(lines.runs_with("durability", "async").size(), 2u);
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
}

TEST(RunLogConcurrency, NoAddIsMissing) {
  LogBenchOptions options = tiny_log();
  options.experiments = {"adds"};
  const PointLines lines = log_lines(options);
  EXPECT_EQ(lines.exit_code, 0);
  ASSERT_EQ(lines.runs.size(), 7u);  // and the disk's flush
  EXPECT_EQ(lines.runs.back().at("target"), "disk");
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
  for (const Json& line : lines.runs) {
    EXPECT_EQ(line.at("ops"), 256);
    EXPECT_GT(number(line, "ops_per_s"), 0);
  }
}

TEST(RunLogConcurrency, GetsBesideACheckpointAreRight) {
  LogBenchOptions options = tiny_log();
  options.experiments = {"beside"};
  options.keys = 20'000;
  const PointLines lines = log_lines(options);
  EXPECT_EQ(lines.exit_code, 0);
  ASSERT_EQ(lines.runs.size(), 3u);
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
  for (const Json& line : lines.runs) {
    EXPECT_GE(number(line, "ops"), 256);
    EXPECT_GT(number(line, "ns_p99"), 0);
  }
  EXPECT_GE(number(lines.runs_with("beside", "puts").front(), "puts_per_get"), 0);
}

// The result of the paper's figure: stores that bypass the cache are written once in granules, in
// any order; evicted ones are written in lines, each of which may cost a granule.
TEST(RunLog, PlacementDecidesHowMuchPersistentMemoryWrites) {
  LogBenchOptions options = tiny_log();
  options.experiments = {"placement"};
  options.ops = 40'000;
  options.placed_bytes = {64, 256};
  options.region_bytes = {4U << 20};
  options.cache_bytes = 64U << 10;
  const PointLines lines = log_lines(options);
  EXPECT_EQ(lines.exit_code, 0);
  ASSERT_EQ(lines.runs.size(), 2u * 2 * 2 * 3);
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
  for (const Json& line : lines.runs) {
    const bool persistent = line.at("memory") == "persistent";
    const bool whole = line.at("record_bytes") == 256;
    const bool sequential = line.at("workload") == "sequential";
    const bool past_cache =
        line.at("target") == "memory" || (line.at("target") == "adaptive" && persistent);
    const double amplification = number(line, "model_write_amplification");
    SCOPED_TRACE(line.dump());
    if (!persistent) {
      EXPECT_EQ(number(line, "write_amplification"), 0);
      EXPECT_NEAR(amplification, 1, 0.05);  // of a cache that is much smaller: it keeps little
    } else if (past_cache) {
      EXPECT_NEAR(number(line, "write_amplification"), whole || sequential ? 1 : 4, 0.05);
      EXPECT_NEAR(amplification, whole || sequential ? 1 : 4, 0.05);
    } else {
      EXPECT_NEAR(number(line, "write_amplification"), 4, 0.05);
      EXPECT_GT(amplification, 2.5);
    }
    EXPECT_NEAR(number(line, "model_write_gb_per_s"), 3.5 * amplification, 0.03);  // both rounded
  }
}

// The other half of the figure: memory that fits into the cache is hardly written.
TEST(RunLog, ACacheKeepsWhatFitsIt) {
  LogBenchOptions options = tiny_log();
  options.experiments = {"placement"};
  options.ops = 2'000;
  options.placed_bytes = {64};
  options.region_bytes = {1U << 20};
  options.cache_bytes = 2U << 20;
  const PointLines lines = log_lines(options);
  for (const Json& line : lines.runs_with("target", "cache")) {
    EXPECT_EQ(number(line, "model_write_gb_per_s"), 0) << line.dump();
  }
  for (const Json& line : lines.runs_with("target", "memory")) {
    EXPECT_GE(number(line, "model_write_gb_per_s"), 3.3) << line.dump();
  }
}

TEST(RunLog, WrongOptionsAreRefused) {
  const auto refused = [](auto change) {
    LogBenchOptions options = tiny_log();
    change(options);
    return problem_of(options).has_value();
  };
  EXPECT_FALSE(problem_of(tiny_log()));
  EXPECT_TRUE(refused([](auto& options) { options.experiments = {"nothing"}; }));
  EXPECT_TRUE(refused([](auto& options) { options.targets.clear(); }));
  EXPECT_TRUE(refused([](auto& options) { options.record_bytes = {7}; }));
  EXPECT_TRUE(refused([](auto& options) { options.writers = {0}; }));
  EXPECT_TRUE(refused([](auto& options) { options.in_flight = {}; }));
  EXPECT_TRUE(refused([](auto& options) { options.writes = {17}; }));
  EXPECT_TRUE(refused([](auto& options) { options.gap_us = {0}; }));
  EXPECT_TRUE(refused([](auto& options) { options.ops = 1; }));
  EXPECT_TRUE(refused([](auto& options) { options.keys = 0; }));
  EXPECT_TRUE(refused([](auto& options) { options.pairs_in_flight = 0; }));
  EXPECT_TRUE(refused([](auto& options) { options.repeats = 0; }));
  EXPECT_TRUE(refused([](auto& options) { options.stop_disk = true; }));
  EXPECT_TRUE(refused([](auto& options) { options.placed_bytes = {96}; }));
  EXPECT_TRUE(refused([](auto& options) { options.region_bytes = {4096}; }));
  EXPECT_TRUE(refused([](auto& options) { options.cache_bytes = 0; }));
}

TEST(RunRecoveryConcurrency, EveryStartHasAllPairs) {
  RecoveryBenchOptions options;
  options.repeats = 1;
  options.keys = {600};
  options.maps = {1, 2};
  options.threads = {1, 2};
  options.probe_rounds = 0;
  options.json = true;
  const PointLines lines =
      slots_of("recovery", [&](const Output& output) { return run_benchmark(options, output); });
  EXPECT_EQ(lines.exit_code, 0);
  ASSERT_EQ(lines.runs.size(), 8u);
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
  for (const Json& line : lines.runs) {
    EXPECT_EQ(line.at("ops"), 600);
    EXPECT_GT(number(line, "bytes_per_s"), 0);
    EXPECT_GT(number(line, "disk_bytes_per_s"), 0);
  }
}

TEST(RunRecovery, WrongOptionsAreRefused) {
  RecoveryBenchOptions options;
  EXPECT_FALSE(problem_of(options));
  options.threads = {17};
  EXPECT_TRUE(problem_of(options));
  options = {};
  options.maps = {0};
  EXPECT_TRUE(problem_of(options));
  options = {};
  options.keys = {};
  EXPECT_TRUE(problem_of(options));
  options = {};
  options.from = {};
  EXPECT_TRUE(problem_of(options));
}

}  // namespace
}  // namespace espalier::bench

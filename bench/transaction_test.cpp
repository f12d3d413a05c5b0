// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "bench/benchmark.hpp"
#include "bench/run_transaction.hpp"
#include "bench/testing/json_number.hpp"
#include "bench/testing/point_lines.hpp"

namespace espalier::bench {
namespace {

TransactionBenchOptions tiny_transactions(const std::string& experiment) {
  TransactionBenchOptions options;
  options.experiments = {experiment};
  options.repeats = 1;
  options.ops = 200;
  options.pairs = 500;
  options.accounts = 500;
  options.keys = 1000;
  options.probe_rounds = 0;
  options.json = true;
  return options;
}

PointLines lines_of_run(const TransactionBenchOptions& options) {
  PointLines lines =
      slots_of("transaction", [&](const Output& output) { return run_benchmark(options, output); });
  EXPECT_EQ(lines.exit_code, 0);
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
  return lines;
}

PointLines transaction_lines(const TransactionBenchOptions& options) {
  PointLines lines = lines_of_run(options);
  for (const Json& line : lines.runs) {
    EXPECT_EQ(line.at("ops"), options.ops);
    EXPECT_GT(number(line, "ns_p99"), 0);
  }
  return lines;
}

// Both ways read the same, and all replicas are equal in the end, or the run fails.
TEST(RunTransactionConcurrency, BothWaysThroughChainsComeToTheSame) {
  TransactionBenchOptions options = tiny_transactions("line");
  options.transports = {NodeTransport::shm, NodeTransport::roce_memif, NodeTransport::roce_udp};
  options.nodes = {1, 3};
  options.hop_ns = 100;
  const PointLines lines = transaction_lines(options);
  ASSERT_EQ(lines.runs.size(), 3u * 2 * 2 * 2 * 2);
  for (const Json& line : lines.runs) {
    const double nodes = number(line, "nodes");
    const bool both = line.at("workload") == "4+2";
    const bool one_by_one = line.at("target") == "one-by-one";
    const double trips = one_by_one && both ? 4 + 2 * nodes : nodes;
    EXPECT_EQ(number(line, "round_trips_per_op"), trips) << line.dump();
    EXPECT_GE(number(line, "ns_p50"), 2 * trips * static_cast<double>(options.hop_ns));
    EXPECT_GE(number(line, "bytes_per_op"), number(line, "value_bytes") * nodes);
  }
}

// Records that have arrived at a replica are durable, except with the policy `cache`, with which
// the replica writes them back; replicas are equal with each policy.
TEST(RunTransactionConcurrency, RecordsAreDurableByEveryPolicy) {
  TransactionBenchOptions options = tiny_transactions("line");
  options.transports = {NodeTransport::shm, NodeTransport::roce_udp};
  options.nodes = {3};
  options.value_bytes = {64};
  options.hop_ns = 100;
  using enum fabric::PlacementPolicy;
  options.placements = {adaptive, cache, memory};
  const PointLines lines = transaction_lines(options);
  ASSERT_EQ(lines.runs.size(), 2u * 2 * 2 * 3);
  for (const Json& line : lines.runs) {
    const bool one_by_one = line.at("target") == "one-by-one";
    const double writes = line.at("workload") == "4+2" ? 2 : 1;
    // At least into the rings of two of three replicas, and with the number in a WRITE of its own.
    const double least = one_by_one ? 3 * writes : 2;
    if (line.at("placement") == "cache") {
      EXPECT_EQ(number(line, "granules_per_op"), 0) << line.dump();
    } else {
      EXPECT_GE(number(line, "granules_per_op"), least) << line.dump();
    }
  }
}

TEST(RunTransactionConcurrency, NoMoneyIsMadeOrLost) {
  const PointLines lines = transaction_lines(tiny_transactions("bank"));
  ASSERT_EQ(lines.runs.size(), 4u);
  EXPECT_EQ(lines.runs_with("target", "rocksdb").size(), 2u);
  for (const Json& line : lines.runs_with("threads", 1)) {
    EXPECT_EQ(number(line, "repeats_per_op"), 0);
  }
}

TEST(RunTransactionConcurrency, BothStoresReadTheSame) {
  const PointLines lines = transaction_lines(tiny_transactions("ycsb"));
  ASSERT_EQ(lines.runs.size(), 4u);
  EXPECT_EQ(lines.runs_with("target", "embedded").size(), 2u);
}

TEST(RunTransactionConcurrency, BothClocksAnswerTheSame) {
  TransactionBenchOptions options = tiny_transactions("clock");
  options.ops = 20'000;
  const PointLines lines = transaction_lines(options);
  ASSERT_EQ(lines.runs.size(), 4u);
  EXPECT_EQ(lines.runs_with("clock", "shared").size(), 2u);
}

// They fork, which ThreadSanitizer does not support.
TEST(RunTransaction, ChainsHaveWhatOneNodeHas) {
  TransactionBenchOptions options = tiny_transactions("nodes");
  options.nodes = {2};
  options.fence_ms = {20'000};  // a busy machine removes no member
  const PointLines lines = lines_of_run(options);
  ASSERT_EQ(lines.runs.size(), 2u);
  for (const Json& line : lines.runs) {
    EXPECT_EQ(line.at("ops"), options.ops);
    EXPECT_GT(number(line, "cpu_ns_per_op"), 0);
  }
}

TEST(RunTransaction, TheCountOutlivesTheHead) {
  TransactionBenchOptions options = tiny_transactions("failover");
  options.fence_ms = {2000};
  options.puts = 40;
  const PointLines lines = lines_of_run(options);
  ASSERT_EQ(lines.runs.size(), 1u);
  EXPECT_GT(number(lines.runs.front(), "longest_pause_ms"), 1);
}

TEST(RunTransaction, ShapesAreReadAndWrites) {
  const auto shape = parse_shape("4+2");
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->reads, 4u);
  EXPECT_EQ(shape->writes, 2u);
  for (const char* const wrong : {"", "4", "+", "4+", "+2", "4+2+1", "a+1", "4,2"}) {
    EXPECT_FALSE(parse_shape(wrong)) << wrong;
  }
}

TEST(RunTransaction, WrongOptionsAreRefused) {
  const auto refused = [](auto change) {
    TransactionBenchOptions options = tiny_transactions("line");
    change(options);
    return problem_of(options).has_value();
  };
  EXPECT_FALSE(problem_of(TransactionBenchOptions()));
  EXPECT_TRUE(refused([](auto& options) { options.experiments = {"nothing"}; }));
  EXPECT_TRUE(refused([](auto& options) { options.ways.clear(); }));
  EXPECT_TRUE(refused([](auto& options) { options.transports = {NodeTransport::unix_socket}; }));
  EXPECT_TRUE(refused([](auto& options) { options.nodes = {0}; }));
  EXPECT_TRUE(refused([](auto& options) { options.value_bytes = {4096}; }));
  EXPECT_TRUE(refused([](auto& options) { options.shapes = {{0, 0}}; }));
  EXPECT_TRUE(refused([](auto& options) { options.shapes = {{8, 8}}; }));
  EXPECT_TRUE(refused([](auto& options) { options.pairs = 1; }));
  EXPECT_TRUE(refused([](auto& options) { options.targets.clear(); }));
  EXPECT_TRUE(refused([](auto& options) { options.accounts = 1; }));
  EXPECT_TRUE(refused([](auto& options) { options.length = 1; }));
  EXPECT_TRUE(refused([](auto& options) { options.threads = {0}; }));
  EXPECT_TRUE(refused([](auto& options) { options.keys = 1; }));
  EXPECT_TRUE(refused([](auto& options) { options.in_flight = 0; }));
  EXPECT_TRUE(refused([](auto& options) { options.fence_ms = {10}; }));
  EXPECT_TRUE(refused([](auto& options) { options.puts = 1; }));
  EXPECT_TRUE(refused([](auto& options) { options.ops = 0; }));
  EXPECT_TRUE(refused([](auto& options) { options.repeats = 0; }));
}

}  // namespace
}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>

#include "bench/benchmark.hpp"
#include "bench/rank_tree.hpp"
#include "bench/report.hpp"
#include "bench/run_in_network.hpp"
#include "dataplane/compiler.hpp"

namespace espalier::bench {
namespace {

TEST(RankTree, WithoutTablesEachKeyTakesALevelMoreThanTheTreeHas) {
  const auto accesses = scattered_ranks(1000, 0.99, 1);
  const RankTree tree = make_rank_tree(accesses, 12);
  EXPECT_EQ(tree.levels, 3u);
  const auto tables = dataplane::compile(tree.tree, {.ranges = 1, .sets = 0}).tables;
  const Trips trips = count_trips(tree, tables, accesses);
  EXPECT_DOUBLE_EQ(trips.mean, 4);
  EXPECT_EQ(trips.p99, 4u);
}

TEST(RankTree, TablesOfAllNodesLeaveOneRead) {
  const auto accesses = scattered_ranks(1000, 0.99, 1);
  const RankTree tree = make_rank_tree(accesses, 12);
  const auto tables = dataplane::compile(tree.tree, {.ranges = 12, .sets = 2}).tables;
  EXPECT_DOUBLE_EQ(count_trips(tree, tables, accesses).mean, 1);
}

/// Mean round trips of a get to the leaf, in a tree and with tables like the paper's.
double trips_of(std::size_t keys, const dataplane::TableLimits& limits) {
  const auto accesses = scattered_ranks(keys, 0.99, 1);
  const RankTree tree = make_rank_tree(accesses, 12);
  return count_trips(tree, dataplane::compile(tree.tree, limits).tables, accesses).mean;
}

// The paper's Figs. 5 and 9, with 16.1 us per trip.
TEST(RankTreeSlow, TripsAreThePapersOrFewer) {
  constexpr dataplane::TableLimits kNone{.ranges = 1, .sets = 0};
  constexpr double kNear = 1.15;
  EXPECT_DOUBLE_EQ(trips_of(1'000'000, kNone), 7);
  EXPECT_DOUBLE_EQ(trips_of(3'000'000, kNone), 8);
  EXPECT_LE(trips_of(1'000'000, {.ranges = 600, .sets = 3, .nodes_per_set = 3600}), 1.71 * kNear);
  EXPECT_LE(trips_of(2'000'000, {.ranges = 600, .sets = 3, .nodes_per_set = 3600}), 2.04 * kNear);
  EXPECT_LE(trips_of(2'000'000, {.ranges = 600, .sets = 3, .nodes_per_set = 300}), 2.83 * kNear);
  EXPECT_LE(trips_of(2'000'000, {.ranges = 600, .sets = 0}), 4.60 * kNear);
}

TEST(RunInNetwork, PrintsAllMeasurements) {
  InNetworkOptions options;
  options.keys = 2000;
  options.ranges = 20;
  options.nodes_per_set = 30;
  options.json = true;
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_benchmark(options, {out, err}), 0);
  std::istringstream lines(out.str());
  std::vector<Json> read;
  for (std::string line; std::getline(lines, line);) read.push_back(Json::parse(line));
  ASSERT_EQ(read.size(), 6u + 5u + 3u + 7u + 4u + 1u);
  EXPECT_EQ(read.back().at("measurements"), 25);
  const auto reads = [&read](std::size_t line) {
    return read[line].at("round_trips_per_op").get<double>();
  };
  // Requests that differ from those of the tables take more READs, more layers fewer.
  EXPECT_LT(reads(6), reads(10));
  EXPECT_GT(reads(21), reads(24));
  EXPECT_EQ(read[21].at("sets"), 0);
  // Each READ costs the same: 2000 keys have four levels and the leaf.
  EXPECT_DOUBLE_EQ(read[21].at("model_latency_ns").get<double>(), 16'100 * reads(21));
  EXPECT_DOUBLE_EQ(read[21].at("model_latency_ns_without").get<double>(), 16'100 * 5);
  EXPECT_DOUBLE_EQ(read[21].at("model_ops_per_second_ratio").get<double>(), 5 / reads(21));

  options.json = false;
  options.experiments = {"layers"};
  std::ostringstream table;
  EXPECT_EQ(run_benchmark(options, {table, err}), 0);
  EXPECT_NE(table.str().find("total: 4 measurements"), std::string::npos);
  EXPECT_EQ(err.str(), "");
}

TEST(RunInNetwork, RefusesOptionsWithASentence) {
  const auto problem = [](auto change) {
    InNetworkOptions options;
    change(options);
    return problem_of(options).value_or("none");
  };
  EXPECT_EQ(problem([](InNetworkOptions&) {}), "none");
  EXPECT_EQ(problem([](InNetworkOptions& o) { o.keys = 1; }), "--keys must be 2 to 100000000");
  EXPECT_EQ(problem([](InNetworkOptions& o) { o.ranges = 0; }), "--ranges must be 1 to 65536");
  EXPECT_EQ(problem([](InNetworkOptions& o) { o.fanout = 1; }), "--fanout must be 2 to 1024");
  EXPECT_EQ(problem([](InNetworkOptions& o) { o.experiments = {"x"}; }),
            "--experiment x: there are scale, changed, skew, nodes, layers");
  EXPECT_EQ(problem([](InNetworkOptions& o) { o.model_trip_ns = 0; }),
            "--model-trip must be 1 to 1000000000");
  InNetworkOptions wrong;
  wrong.sets = 9;
  std::ostringstream out;
  EXPECT_THROW(run_benchmark(wrong, {out, out}), std::runtime_error);
}

}  // namespace
}  // namespace espalier::bench

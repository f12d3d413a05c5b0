// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/benchmark.hpp"
#include "bench/ethernet_model.hpp"
#include "bench/report.hpp"
#include "bench/run_in_network.hpp"
#include "bench/run_switch.hpp"
#include "bench/testing/json_number.hpp"

namespace espalier::bench {
namespace {

SwitchRunOptions tiny_switch() {
  SwitchRunOptions options;
  options.keys = 3000;
  options.value_bytes = 20;
  options.node_bytes = 1024;
  options.ops = 200;
  options.rounds = 1;
  options.frames = 5000;
  options.updates = 30;
  options.installs = 3;
  return options;
}

SwitchRunOptions tiny_switch(const char* experiment) {
  SwitchRunOptions options = tiny_switch();
  options.experiments = {experiment};
  options.json = true;
  if (options.experiments.front() == "gets") return options;
  options.ranges = 100;  // fewer than nodes, so that tables end above some leaves
  options.nodes_per_set = 60;
  return options;
}

std::vector<Json> switch_lines(const SwitchRunOptions& options) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_benchmark(options, {out, err}), 0);
  EXPECT_EQ(err.str(), "");
  std::istringstream lines(out.str());
  std::vector<Json> read;
  for (std::string line; std::getline(lines, line);) read.push_back(Json::parse(line));
  return read;
}

TEST(RunSwitch, APartOfAScanAddsFewerReadsThroughTheSwitch) {
  SwitchRunOptions options = tiny_switch("parts");
  options.ops = 20;
  options.ranges = 600;
  options.nodes_per_set = 3600;
  const std::vector<Json> read = switch_lines(options);
  ASSERT_EQ(read.size(), 10u);
  for (std::size_t way = 0; way < 2; ++way) {
    for (std::size_t i = 0; i < 4; ++i) {
      const Json& line = read[way * 4 + i];
      EXPECT_EQ(line.at("target"), way == 0 ? "one-sided" : "in-network");
      EXPECT_EQ(number(line, "parts"), (std::array{1, 2, 5, 10})[i]);
      EXPECT_GT(number(line, "p50_ns"), 0);
      if (way == 1) {
        // A READ brings at most 1024 bytes of items.
        EXPECT_GE(number(line, "reads_per_op"), 4);
        EXPECT_LT(number(line, "reads_per_op"), number(read[i], "reads_per_op"));
      } else if (i != 0) {
        EXPECT_GT(number(line, "reads_per_op"), number(read[0], "reads_per_op"));
      }
    }
  }
  EXPECT_EQ(read[8].at("target"), "in-network/one-sided");
  // Tables lead to every leaf here, so a part costs one READ, while a walk from leaf to leaf reads
  // the place of each as well: parts save READs.
  EXPECT_LT(number(read[8], "added_reads_ratio"), 0.35);
  EXPECT_GT(number(read[8], "added_reads_ratio"), -1);
}

TEST(RunSwitch, HintsAreAdmittedWhereNothingIsWritten) {
  SwitchRunOptions options = tiny_switch("hints");
  options.write_percent = 30;
  options.ops = 2'000;
  const std::vector<Json> read = switch_lines(options);
  ASSERT_EQ(read.size(), 7u);
  EXPECT_EQ(read[0].at("target"), "no-hint");
  EXPECT_EQ(number(read[0], "node_cpu_ratio"), 1);
  for (const std::size_t line : {1, 2}) {
    EXPECT_EQ(number(read[line], "write_percent"), 0);
    EXPECT_EQ(number(read[line], "admitted_share"), 1);
  }
  const Json& leaf = read[5];
  EXPECT_EQ(leaf.at("target"), "leaf");
  EXPECT_EQ(number(leaf, "write_percent"), 30);
  EXPECT_LT(number(leaf, "admitted_share"), 1) << "leaves move at each merge of their logs";
  EXPECT_NEAR(
      number(leaf, "admitted_share") + number(leaf, "moved_share") + number(leaf, "refused_share"),
      1, 1e-9);
}

// The whole of Fig. 10, with tiny sizes.
TEST(RunSwitch, NodesBehindAFatTreeSpendNoMoreOnHintedGets) {
  SwitchRunOptions options = tiny_switch("fat-tree");
  options.ops = 1'000;
  const std::vector<Json> read = switch_lines(options);
  ASSERT_EQ(read.size(), 3u * (4 + 5 + 4 + 3) + 1);
  for (std::size_t i = 0; i + 1 < read.size(); i += 3) {
    EXPECT_EQ(read[i].at("target"), "from-root");
    EXPECT_EQ(read[i + 1].at("target"), "hinted");
    SCOPED_TRACE(read[i + 1].dump());
    EXPECT_GT(number(read[i + 1], "table_hit_share"), 0.9) << "the tables lead to all leaves";
    const double admitted = number(read[i + 1], "admitted_share");
    EXPECT_GT(admitted, 0.3);
    EXPECT_NEAR(
        admitted + number(read[i + 1], "moved_share") + number(read[i + 1], "refused_share"), 1,
        1e-9);
    if (number(read[i], "read_percent") == 100) {
      EXPECT_EQ(admitted, 1) << "nothing moves that is not written";
      EXPECT_EQ(number(read[i + 1], "astray_share"), 0);
    }
    if (number(read[i], "read_percent") == 50) {
      EXPECT_LT(admitted, 1) << "leaves move at each merge of their logs";
    }
    EXPECT_GT(number(read[i + 1], "hop_cpu_ns"), 0);
    EXPECT_GT(number(read[i + 1], "model_ops_per_second"), 0);
    EXPECT_EQ(read[i + 2].at("target"), "hinted/from-root");
    EXPECT_GT(number(read[i + 2], "node_cpu_ratio"), 0);
  }
  // More clients reach a higher rate, as long as nodes are not saturated.
  const std::size_t clients = 3 * 4;
  EXPECT_EQ(read[clients].at("figure"), "tree-clients");
  EXPECT_GT(number(read[clients + 3], "model_ops_per_second"),
            1.9 * number(read[clients], "model_ops_per_second"));
}

TEST(EthernetModel, RatesAreThoseOfTripsOrOfTheBusiestNode) {
  const ModelledServer one[] = {{1, 1'000}};
  EXPECT_NEAR(model_closed_rate(one, 1, 9'000, 1), 1e5, 1);
  EXPECT_NEAR(model_closed_rate(one, 5, 9'000, 1), 5e5, 5e3) << "nobody waits";
  EXPECT_NEAR(model_closed_rate(one, 100, 9'000, 1), 1e6, 1);
  // A node with three fourths of the requests is saturated.
  const ModelledServer two[] = {{0.75, 1'000}, {0.25, 1'000}};
  EXPECT_NEAR(model_closed_rate(two, 200, 9'000, 1), 1e6 / 0.75, 3e4);
}

TEST(RunSwitch, AGetThroughTheSwitchTakesFewerReads) {
  const std::vector<Json> read = switch_lines(tiny_switch("gets"));
  ASSERT_EQ(read.size(), 6u);
  EXPECT_EQ(read[0].at("target"), "rpc");
  EXPECT_EQ(read[3].at("target"), "in-network");
  EXPECT_GT(number(read[1], "round_trips_per_op"), 3);
  EXPECT_LT(number(read[3], "round_trips_per_op"), 1.1);
  EXPECT_GT(number(read[3], "one_trip_share"), 0.9);
  EXPECT_DOUBLE_EQ(number(read[1], "model_latency_ns"),
                   16'100 * number(read[1], "round_trips_per_op"));
  const Json& ratios = read[4];
  EXPECT_EQ(ratios.at("target"), "in-network/one-sided");
  EXPECT_DOUBLE_EQ(number(ratios, "p50_ratio"),
                   number(read[3], "p50_ns") / number(read[1], "p50_ns"));
  EXPECT_DOUBLE_EQ(number(ratios, "ops_per_second_ratio"),
                   number(read[3], "ops_per_second") / number(read[1], "ops_per_second"));
  EXPECT_GT(number(ratios, "model_ops_per_second_ratio"), 2.7);
  EXPECT_FALSE(ratios.contains("one_trip_share_ratio"));
  EXPECT_EQ(read[5].at("measurements"), 4);
}

TEST(RunSwitch, WritesAgeTables) {
  SwitchRunOptions options = tiny_switch("gets");
  options.write_percent = 50;
  const std::vector<Json> read = switch_lines(options);
  ASSERT_EQ(read.size(), 7u);
  EXPECT_EQ(read[4].at("target"), "in-network-writes");
  EXPECT_EQ(read[4].at("write_percent"), 50);
  EXPECT_EQ(read[4].at("delay_ms"), 10);
  EXPECT_GE(number(read[4], "round_trips_per_op"), 1);
  EXPECT_LE(number(read[4], "one_trip_share"), 1);
  EXPECT_FALSE(read[4].contains("ops_per_second"));
  double met = 0;
  double more = 0;
  for (const auto& each : read[4].at("met_share").items()) met += each.value().get<double>();
  for (const auto& each : read[4].at("more_reads_share").items()) {
    more += each.value().get<double>();
  }
  EXPECT_NEAR(met, 1, 1e-9);
  EXPECT_NEAR(more, 1 - number(read[4], "one_trip_share"), 1e-9);
  EXPECT_FALSE(read[1].contains("met_share"));
  EXPECT_DOUBLE_EQ(number(read[5], "one_trip_share_ratio"),
                   number(read[4], "one_trip_share") / number(read[3], "one_trip_share"));
  EXPECT_EQ(read[6].at("measurements"), 5);
}

TEST(RunSwitch, HopsWalkFromTheRootOrFromWhereTablesLead) {
  const std::vector<Json> read = switch_lines(tiny_switch("hops"));
  ASSERT_EQ(read.size(), 4u);
  EXPECT_EQ(read[0].at("target"), "without-tables");
  EXPECT_EQ(number(read[0], "round_trips_per_op"), 5);  // 3000 keys: four levels and the leaf
  EXPECT_EQ(number(read[0], "model_latency_ns"), 5 * 16'100);
  EXPECT_EQ(read[1].at("target"), "with-tables");
  EXPECT_GE(number(read[1], "round_trips_per_op"), 1);
  EXPECT_LT(number(read[1], "round_trips_per_op"), 3);
  EXPECT_EQ(read[0].at("read_bytes"), read[1].at("read_bytes"));
  EXPECT_GT(number(read[1], "ns_per_trip"), 0);
  EXPECT_GT(number(read[1], "ops_per_second"), 0);
  EXPECT_DOUBLE_EQ(number(read[2], "model_ops_per_second_ratio"),
                   5 / number(read[1], "round_trips_per_op"));
  EXPECT_DOUBLE_EQ(number(read[2], "mean_ratio"),
                   number(read[1], "mean_ns") / number(read[0], "mean_ns"));
}

// The READs of each point are those that `in-network` counts over all keys: without tables exactly
// the levels plus a leaf, and with them as many as random draws of keys permit.
TEST(RunSwitch, HopsOfEachFigure) {
  SwitchRunOptions options = tiny_switch("hops");
  options.keys = 2000;
  options.figures = {"scale", "changed", "skew", "nodes", "layers"};
  InNetworkOptions counting;
  counting.keys = options.keys;
  counting.ranges = options.ranges;
  counting.nodes_per_set = options.nodes_per_set;
  counting.json = true;
  std::ostringstream counted;
  EXPECT_EQ(run_benchmark(counting, {counted, counted}), 0);
  std::istringstream points(counted.str());
  const std::vector<Json> read = switch_lines(options);
  ASSERT_EQ(read.size(), 3u * 25u + 1u);
  EXPECT_EQ(read.back().at("measurements"), 50);
  for (std::size_t i = 0; i < 25; ++i) {
    std::string text;
    std::getline(points, text);
    const Json exact = Json::parse(text);
    const Json& without = read[3 * i];
    const Json& with = read[3 * i + 1];
    const Json& ratios = read[3 * i + 2];
    SCOPED_TRACE(text);
    for (const Json& line : {without, with, ratios}) {
      EXPECT_EQ(line.at("figure"), exact.at("workload"));
      for (const char* const name : {"keys", "theta", "changed", "sets", "nodes_per_set"}) {
        EXPECT_EQ(line.at(name), exact.at(name)) << name;
      }
    }
    EXPECT_EQ(number(without, "round_trips_per_op"), number(exact, "round_trips_without"));
    EXPECT_NEAR(number(with, "round_trips_exact"), number(exact, "round_trips_per_op"), 1e-4);
    EXPECT_NEAR(number(with, "round_trips_per_op"), number(with, "round_trips_exact"), 0.4);
    EXPECT_EQ(with.at("level_ns").size(), number(exact, "round_trips_without"));
    EXPECT_GT(number(ratios, "ops_per_second_ratio"), 0);
    const double hops = number(ratios, "ns_per_hop") * number(with, "round_trips_per_op");
    EXPECT_NEAR(hops + number(ratios, "ns_per_get_beside"), number(with, "mean_ns"), 1);
  }
}

TEST(RunSwitch, ATripCostsWhatIsSaid) {
  SwitchRunOptions options = tiny_switch("hops");
  options.model_trip_ns = 1000;
  EXPECT_EQ(number(switch_lines(options)[0], "model_latency_ns"), 5000);
}

TEST(RunSwitch, TheFunctionIsTimedByKindsOfFrames) {
  const std::vector<Json> read = switch_lines(tiny_switch("function"));
  ASSERT_EQ(read.size(), 8u);
  const char* const kinds[] = {"parse", "other",       "miss",     "fat-root",
                               "hit",   "hit-uniform", "hit-alone"};
  for (std::size_t i = 0; i < std::size(kinds); ++i) {
    EXPECT_EQ(read[i].at("target"), kinds[i]);
    EXPECT_EQ(read[i].at("ops"), 5000);
    EXPECT_GT(number(read[i], "ns_per_frame"), 0);
    EXPECT_DOUBLE_EQ(number(read[i], "ns_above_parsing"),
                     number(read[i], "ns_per_frame") - number(read[0], "ns_per_frame"));
  }
}

TEST(RunSwitch, ForwardingLosesNothing) {
  const std::vector<Json> read = switch_lines(tiny_switch("forward"));
  ASSERT_EQ(read.size(), 4u);
  EXPECT_EQ(read[0].at("target"), "without-tables");
  EXPECT_EQ(read[1].at("target"), "with-tables");
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read[i].at("ops"), 5000);
    EXPECT_EQ(read[i].at("dropped"), 0);
    EXPECT_EQ(read[i].at("misrouted"), 0);
    // The switch is part of the core's whole work.
    EXPECT_GT(number(read[i], "switch_frames_per_second"), number(read[i], "frames_per_second"));
  }
  EXPECT_DOUBLE_EQ(
      number(read[2], "switch_frames_per_second_ratio"),
      number(read[1], "switch_frames_per_second") / number(read[0], "switch_frames_per_second"));
}

TEST(RunSwitch, TablesChangeUnderFrames) {
  const std::vector<Json> read = switch_lines(tiny_switch("install"));
  ASSERT_EQ(read.size(), 4u);
  EXPECT_EQ(read[0].at("target"), "compile");
  EXPECT_EQ(read[0].at("ranges"), 1024);
  EXPECT_EQ(read[0].at("ops"), 3);
  EXPECT_FALSE(read[0].contains("dropped"));
  EXPECT_EQ(read[1].at("target"), "update");
  EXPECT_EQ(read[1].at("ops"), 30);
  EXPECT_EQ(read[2].at("target"), "replace");
  EXPECT_EQ(read[2].at("ops"), 3);
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_EQ(read[i].at("dropped"), 0);
    EXPECT_EQ(read[i].at("misrouted"), 0);
    EXPECT_GT(number(read[i], "frames"), 512 * number(read[i], "ops"));
    EXPECT_LE(number(read[i], "p50_ns"), number(read[i], "p99_ns"));
  }
}

TEST(RunSwitch, PrintsATableOfEachExperiment) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_benchmark(tiny_switch(), {out, err}), 0);
  for (const char* const word : {"in-network", "with-tables", "hit-uniform", "replace"}) {
    EXPECT_NE(out.str().find(word), std::string::npos) << word;
  }
  EXPECT_NE(out.str().find("total: 61 measurements"), std::string::npos);
}

TEST(RunSwitch, WrongOptionsAreRefused) {
  SwitchRunOptions options = tiny_switch();
  options.node_address = "shm:/somewhere";
  std::ostringstream out;
  EXPECT_THROW(run_benchmark(options, {out, out}), std::runtime_error);
  options = tiny_switch();
  options.node_bytes = 1000;
  EXPECT_TRUE(problem_of(options));
  options = tiny_switch();
  options.write_percent = 91;
  EXPECT_TRUE(problem_of(options));
  options = tiny_switch();
  options.delay_ms = 0;
  EXPECT_TRUE(problem_of(options));
  options = tiny_switch();
  options.rounds = 0;
  EXPECT_TRUE(problem_of(options));
  options = tiny_switch("hop");
  EXPECT_EQ(problem_of(options),
            "--experiment hop: there are gets, parts, hints, hops, fat-tree, function, forward, "
            "install");
  options = tiny_switch("hops");
  options.node_address = "roce+memif:/somewhere";
  EXPECT_EQ(problem_of(options), "--node-address is of gets; hops has a switch of its own");
  options.experiments = {"gets"};
  EXPECT_FALSE(problem_of(options));
  options = tiny_switch("hops");
  options.figures = {"skew", "speed"};
  EXPECT_EQ(problem_of(options),
            "--figure: 'speed' is not one of: scale, changed, skew, nodes, layers, tree-scale, "
            "tree-clients, tree-reads, tree-skew");
  options.figures = {"skew"};
  EXPECT_FALSE(problem_of(options));
  options.experiments = {"gets"};
  EXPECT_EQ(problem_of(options), "skew is of hops");
  options.figures = {"tree-reads"};
  EXPECT_EQ(problem_of(options), "tree-reads is of fat-tree");
  options.experiments = {"fat-tree"};
  EXPECT_FALSE(problem_of(options));
  options = tiny_switch();
  options.updates = 0;
  EXPECT_TRUE(problem_of(options));
}

}  // namespace
}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/benchmark.hpp"
#include "bench/device_workloads.hpp"
#include "bench/report.hpp"
#include "bench/run_device.hpp"
#include "bench/testing/json_number.hpp"

namespace espalier::bench {
namespace {

DeviceBenchOptions tiny_device() {
  DeviceBenchOptions options;
  options.load.keys = 5'000;
  options.load.ops = 2'000;
  options.load.in_flight = 64;
  options.node_bytes = 512;
  return options;
}

std::vector<Json> device_lines(DeviceBenchOptions options) {
  options.json = true;
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_benchmark(options, {out, err}), 0) << err.str();
  std::istringstream lines(out.str());
  std::vector<Json> read;
  for (std::string line; std::getline(lines, line);) read.push_back(Json::parse(line));
  return read;
}

TEST(RunDevice, MeasuresTheHostAndTheDeviceWithAndWithoutItsBalancer) {
  DeviceBenchOptions options = tiny_device();
  options.cache_bytes = {0, 16 << 20};
  options.repeats = 2;
  const std::vector<Json> read = device_lines(options);
  ASSERT_EQ(read.size(), 11u);
  EXPECT_EQ(read[0].at("place"), "host");
  EXPECT_EQ(read[5].at("place"), "host");
  EXPECT_EQ(read[5].at("repeat"), 1);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(read[i].at("experiment"), "cache");
    EXPECT_GT(number(read[i], "ops_per_s"), 0);
  }
  EXPECT_EQ(number(read[1], "hit_share"), 0);
  EXPECT_GT(number(read[3], "hit_share"), 0.9);
  EXPECT_GT(number(read[1], "host_bytes_per_op"), number(read[3], "host_bytes_per_op"));
  EXPECT_GT(number(read[3], "own_bytes_per_op"), 0);
  EXPECT_EQ(number(read[3], "balanced_per_op"), 0);
  EXPECT_GT(number(read[4], "balanced_per_op"), 0);
  EXPECT_EQ(read[10].at("measurements"), 10);
}

// The savings of each kind of memory, as in [Honeycomb Fig. 16]: the root, then interior nodes. And
// if the device's own memory is slow, its balancer makes both paths together carry more.
TEST(RunDevice, RootAndInteriorNodesEachCutWhatIsReadOfTheHost) {
  DeviceBenchOptions options = tiny_device();
  options.bare = true;
  options.cache_bytes = {0, 16 << 20};
  options.load.keys = 20'000;
  options.node_bytes = 2048;        // smaller nodes are read in excess, by whole chunks
  options.load.scan_percent = 100;  // none of which a saturated device forwards
  options.load.scan_items = 1;
  options.own_gbps = 1;
  const std::vector<Json> read = device_lines(options);
  ASSERT_EQ(read.size(), 7u);
  EXPECT_EQ(read[1].at("pins_roots"), false);
  EXPECT_EQ(number(read[1], "own_bytes_per_op") + number(read[1], "hit_share"), 0);
  EXPECT_GT(number(read[1], "host_bytes_per_op"), number(read[2], "host_bytes_per_op"));
  EXPECT_GT(number(read[2], "host_bytes_per_op"), number(read[4], "host_bytes_per_op"));
  EXPECT_EQ(read[5].at("balance"), 1);
  EXPECT_GT(number(read[5], "model_memory_ops_per_s"), number(read[4], "model_memory_ops_per_s"));
}

// Costs are measured, and the model follows from them.
TEST(RunDevice, TheModelIsTheSlowestSides) {
  DeviceBenchOptions options = tiny_device();
  options.cache_bytes = {16 << 20};
  options.balances = {0};
  options.slowness = 3;
  const std::vector<Json> read = device_lines(options);
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(number(read[0], "device_cpu_ns_per_op"), 0);
  EXPECT_GT(number(read[1], "device_cpu_ns_per_op"), number(read[1], "host_cpu_ns_per_op"));
  for (std::size_t i = 0; i < 2; ++i) {
    SCOPED_TRACE(read[i].dump());
    const double client = number(read[i], "client_cpu_ns_per_op");
    EXPECT_GT(client, 0);
    const double longest = std::max({client, number(read[i], "host_cpu_ns_per_op"),
                                     3 * number(read[i], "device_cpu_ns_per_op")});
    EXPECT_DOUBLE_EQ(number(read[i], "model_ops_per_s"), 1e9 / longest);
  }
}

DeviceBenchOptions tiny_workloads(std::vector<Workload> workloads) {
  DeviceBenchOptions options = tiny_device();
  options.experiments = {"ycsb"};
  options.load.keys = 3'000;
  options.workloads = std::move(workloads);
  return options;
}

std::string point_of(const Json& line) {
  std::string point =
      line.at("workload").get<std::string>() + " " + line.at("distribution").get<std::string>();
  if (line.contains("scan_share")) point += " " + line.at("scan_share").dump();
  return point;
}

// The command's exit code shows that answers and the final maps are equal.
TEST(RunDevice, EveryWayAnswersTheSameWorkloads) {
  const std::vector<Json> read = device_lines(tiny_workloads(DeviceBenchOptions{}.workloads));
  ASSERT_EQ(read.size(), 55u);  // (six workloads and three mixes) x two distributions x three
  std::map<std::string, std::set<std::string>> places;
  std::map<std::string, std::set<std::string>> hashes;
  for (std::size_t i = 0; i + 1 < read.size(); ++i) {
    const Json& line = read[i];
    SCOPED_TRACE(line.dump());
    places[point_of(line)].insert(line.at("place").get<std::string>());
    hashes[point_of(line)].insert(line.at("result_hash").get<std::string>());
    EXPECT_EQ(line.at("experiment"), "ycsb");
    EXPECT_EQ(line.at("ops"), 2'000);
    EXPECT_GT(number(line, "ops_per_s"), 0);
    EXPECT_GT(number(line, "p50_ns"), 0);
    EXPECT_LE(number(line, "p50_ns"), number(line, "p99_ns"));
    EXPECT_EQ(line.contains("host_bytes_per_op"), line.at("place") != "host");
    EXPECT_EQ(line.contains("forwarded_per_op"), line.at("place") == "device");
  }
  EXPECT_EQ(places.size(), 18u);
  const std::set<std::string> all{"device", "host", "one-sided"};
  for (const auto& [point, of_point] : places) EXPECT_EQ(of_point, all) << point;
  for (const auto& [point, of_point] : hashes) EXPECT_EQ(of_point.size(), 1u) << point;
  EXPECT_TRUE(places.contains("d latest"));
  EXPECT_TRUE(places.contains("cloud uniform 0.8"));
  EXPECT_EQ(read.back().at("measurements"), 54);
}

// A write is one request for the host's processor, and a read is none.
TEST(RunDevice, TheDeviceForwardsWritesAlone) {
  DeviceBenchOptions options = tiny_workloads({Workload::a, Workload::c, Workload::f});
  options.places = {TargetKind::device};
  options.distributions = {Distribution::uniform};
  options.load.ops = 8'000;
  const std::vector<Json> read = device_lines(options);
  ASSERT_EQ(read.size(), 4u);
  EXPECT_NEAR(number(read[0], "forwarded_per_op"), 0.5, 0.05);
  EXPECT_EQ(number(read[1], "forwarded_per_op"), 0);
  EXPECT_NEAR(number(read[2], "forwarded_per_op"), 0.5, 0.05);  // of f, the second halves
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_GT(number(read[i], "host_bytes_per_op"), 0);  // leaves, each time
    EXPECT_GT(number(read[i], "hit_share"), 0.5);
  }
}

TEST(RunDevice, WhatTheCacheHasNoRoomForMisses) {
  DeviceBenchOptions options = tiny_device();
  options.experiments = {"miss"};
  options.load.keys = 20'000;
  options.load.ops = 10'000;
  const std::vector<Json> read = device_lines(options);
  const std::size_t caches = caches_that_miss(options).size();
  ASSERT_EQ(read.size(), caches + 2);
  EXPECT_EQ(read[0].at("place"), "host");
  EXPECT_FALSE(read[0].contains("miss_share"));
  for (std::size_t i = 1; i <= caches; ++i) {
    SCOPED_TRACE(read[i].dump());
    EXPECT_EQ(read[i].at("place"), "device");
    EXPECT_EQ(read[i].at("result_hash"), read[0].at("result_hash"));
    EXPECT_EQ(read[i].at("hash_covers"), "exact");
    EXPECT_EQ(number(read[i], "forwarded_per_op"), 0);
    EXPECT_NEAR(number(read[i], "miss_share") + number(read[i], "hit_share"), 1, 1e-9);
  }
  EXPECT_EQ(number(read[1], "miss_share"), 1);
  EXPECT_LT(number(read[caches], "miss_share"), 0.5);  // of a cache that fills meanwhile
  EXPECT_GT(number(read[caches / 2], "miss_share"), number(read[caches], "miss_share"));
  EXPECT_GT(number(read[1], "host_bytes_per_op"), number(read[caches], "host_bytes_per_op"));
}

TEST(RunDevice, ASlowedDeviceAnswersAlike) {
  DeviceBenchOptions options = tiny_workloads({Workload::a});
  options.places = {TargetKind::node, TargetKind::device};
  options.slowness = 3;
  const std::vector<Json> read = device_lines(options);
  ASSERT_EQ(read.size(), 5u);
  EXPECT_FALSE(read[0].contains("slowness"));
  EXPECT_EQ(number(read[1], "slowness"), 3);
  EXPECT_EQ(read[1].at("result_hash"), read[0].at("result_hash"));
}

TEST(RunDevice, PrintsATableOfWorkloads) {
  DeviceBenchOptions options = tiny_workloads({Workload::cloud});
  options.distributions = {Distribution::uniform};
  options.scan_shares = {1};
  std::ostringstream out;
  EXPECT_EQ(run_benchmark(options, {out, out}), 0);
  EXPECT_NE(out.str().find("cloud     uniform"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("one-sided"), std::string::npos);
  EXPECT_NE(out.str().find("total: 3 measurements"), std::string::npos);
}

TEST(RunDevice, PrintsATableOfScans) {
  DeviceBenchOptions options = tiny_device();
  options.load.ops = 200;
  options.load.scan_percent = 100;
  options.cache_bytes = {1 << 20};
  options.balances = {0};
  std::ostringstream out;
  EXPECT_EQ(run_benchmark(options, {out, out}), 0);
  EXPECT_NE(out.str().find("device"), std::string::npos);
  EXPECT_NE(out.str().find("total: 2 measurements"), std::string::npos);
}

TEST(RunDevice, WrongOptionsAreRefused) {
  DeviceBenchOptions options = tiny_device();
  options.balances = {1001};
  std::ostringstream out;
  EXPECT_THROW(run_benchmark(options, {out, out}), std::runtime_error);
  options = tiny_device();
  options.node_bytes = 100;
  EXPECT_TRUE(problem_of(options));
  options = tiny_device();
  options.load.in_flight = 0;
  EXPECT_TRUE(problem_of(options));
  options = tiny_device();
  options.experiments = {"hits"};
  EXPECT_TRUE(problem_of(options));
  options = tiny_device();
  options.slowness = 0.5;
  EXPECT_TRUE(problem_of(options));
  EXPECT_TRUE(problem_of(tiny_workloads({Workload::load})));
  options = tiny_workloads({Workload::a});
  options.cache_bytes = {0, 1 << 20};
  EXPECT_TRUE(problem_of(options));
}

}  // namespace
}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/benchmark.hpp"
#include "bench/run_rings.hpp"
#include "bench/testing/point_lines.hpp"

namespace espalier::bench {
namespace {

RingsOptions tiny_rings(const std::string& experiment) {
  RingsOptions options;
  options.experiments = {experiment};
  options.rings = {1, 20};
  options.in_flight = {1, 5};
  options.payload_bytes = {100};
  options.ops = 100;
  options.opened = 9;
  options.idle = {0, 3};
  options.seconds = 0.01;
  options.list_nodes = 1000;
  options.repeats = 2;
  options.json = true;
  options.probe_rounds = 0;
  return options;
}

PointLines rings_lines(const RingsOptions& options) {
  PointLines lines =
      slots_of("rings", [&](const Output& output) { return run_benchmark(options, output); });
  EXPECT_EQ(lines.exit_code, 0);
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
  EXPECT_EQ(lines.runs.size(), lines.medians.size() * options.repeats);
  for (const Json& line : lines.runs) EXPECT_EQ(line.at("complete"), true) << line;
  for (const Json& line : lines.medians) {
    EXPECT_EQ(line.at("median_of"), options.repeats);
    EXPECT_EQ(line.at("incomplete"), 0);
    EXPECT_EQ(line.at("experiment"), options.experiments.front());
  }
  return lines;
}

TEST(RunRings, PrintsEveryRunAndThenTheMedians) {
  const RingsOptions options = tiny_rings("doorbell");
  const PointLines lines = rings_lines(options);
  ASSERT_EQ(lines.medians.size(), 4u);
  EXPECT_EQ(lines.medians[2].at("target"), "doorbells");
  EXPECT_EQ(lines.medians[2].at("rings"), 20);
  EXPECT_EQ(lines.medians[3].at("target"), "next-lines");
  for (const Json& line : lines.runs) {
    EXPECT_GT(line.at("ops_per_s"), 0) << line;
    // None before requests came, and all of them after.
    EXPECT_EQ(line.at("result_hash"),
              line.at("rings") == 1 ? "0000000000000001" : "0000000000000014")
        << line;
  }
}

TEST(RunRings, NoopsOneAtATimeInFlightAndLong) {
  const PointLines lines = rings_lines(tiny_rings("noop"));
  ASSERT_EQ(lines.medians.size(), 3u);
  EXPECT_EQ(lines.medians[0].at("workload"), "round-trip");
  EXPECT_EQ(lines.medians[1].at("in_flight"), 5);
  EXPECT_EQ(lines.medians[2].at("payload_bytes"), 100);
  EXPECT_EQ(lines.runs_with("workload", "round-trip").front().at("ops"), 100);
}

TEST(RunRings, ConnectionsThatCloseLeaveNoDescriptorBehind) {
  const PointLines lines = rings_lines(tiny_rings("connections"));
  EXPECT_EQ(lines.runs_with("workload", "connected").size(), 4u);
  const std::vector<Json> closed = lines.runs_with("workload", "open-close");
  ASSERT_EQ(closed.size(), 4u);
  for (const Json& line : closed) {
    EXPECT_EQ(line.at("ops"), 9);
    EXPECT_EQ(line.at("descriptors_after"), line.at("descriptors_before")) << line;
    // While some are connected, each has a socket in the node's process.
    EXPECT_GE(line.at("descriptors_most").get<double>(),
              line.at("descriptors_before").get<double>() + line.at("at_once").get<double>());
    EXPECT_GT(line.at("resident_bytes_before"), 0);
    EXPECT_GT(line.at("resident_bytes_after"), 0);
    EXPECT_GE(line.at("resident_bytes_most"), line.at("resident_bytes_before"));
  }
  EXPECT_EQ(closed[0].at("at_once"), 1);
  EXPECT_EQ(closed[1].at("at_once"), 9);
}

TEST(RunRings, ASleepingNodeIsWokenForEachRequest) {
  const PointLines lines = rings_lines(tiny_rings("sleep"));
  for (const Json& line : lines.runs_with("workload", "spinning")) {
    EXPECT_EQ(line.at("ops"), 2);
    EXPECT_LE(line.at("ns_p50"), line.at("ns_p99"));
  }
  for (const Json& line : lines.runs_with("workload", "woken")) {
    EXPECT_EQ(line.at("ops"), 2);
    EXPECT_GE(line.at("wake_ups_per_op"), 1) << line;
    EXPECT_LE(line.at("bell_ns_p50"), line.at("ns_p50"));
  }
  const std::vector<Json> idle = lines.runs_with("workload", "idle");
  ASSERT_EQ(idle.size(), 4u);
  for (const Json& line : idle) {
    EXPECT_GE(line.at("seconds"), 0.01);
    EXPECT_GE(line.at("cpu_us_per_s"), 0);
  }
  EXPECT_EQ(idle[1].at("connected"), 3);
}

TEST(RunRings, ChasesEndAtTheSameNodesWhoeverFollows) {
  const PointLines lines = rings_lines(tiny_rings("chase"));
  ASSERT_EQ(lines.medians.size(), 6u);
  // run() has checked that the hashes are equal; here, that both ways were run.
  EXPECT_EQ(lines.medians[0].at("workload"), "offload");
  EXPECT_EQ(lines.medians[0].at("round_trips_per_op"), 1);
  EXPECT_EQ(lines.medians[1].at("workload"), "hop-by-hop");
  EXPECT_EQ(lines.medians[1].at("round_trips_per_op"), 3);
  EXPECT_EQ(lines.medians[4].at("connections"), 16);
  EXPECT_EQ(lines.medians[4].at("news_by"), "polling");
  EXPECT_EQ(lines.medians[5].at("news_by"), "doorbells");
  for (const Json& line : lines.runs) EXPECT_EQ(line.at("ops"), 100);
  RingsOptions other = tiny_rings("chase");
  other.seed = 2;
  EXPECT_NE(rings_lines(other).runs.front().at("result_hash"),
            lines.runs.front().at("result_hash"));
}

TEST(RunRings, TablesForPeople) {
  RingsOptions options = tiny_rings("doorbell");
  options.rings = {3};
  options.repeats = 1;
  options.json = false;
  std::ostringstream out;
  EXPECT_EQ(run_benchmark(options, {out, out}), 0);
  EXPECT_NE(out.str().find("rings=3"), std::string::npos);
  EXPECT_NE(out.str().find("all answers equal"), std::string::npos);
}

TEST(RunRings, RefusesOptionsWithASentence) {
  std::ostringstream out;
  const auto problem = [](auto change) {
    RingsOptions options = tiny_rings("doorbell");
    change(options);
    return problem_of(options).value_or("");
  };
  EXPECT_EQ(problem([](RingsOptions&) {}), "");
  EXPECT_EQ(problem([](RingsOptions& o) { o.experiments = {"bell"}; }),
            "--experiment bell: there are doorbell, noop, connections, sleep, chase");
  EXPECT_EQ(problem([](RingsOptions& o) { o.rings = {4, 0}; }), "--rings must be 1 to 16384");
  EXPECT_NE(problem([](RingsOptions& o) { o.ops = 1; }).find("--ops"), std::string::npos);
  EXPECT_NE(problem([](RingsOptions& o) { o.repeats = 0; }).find("--repeat"), std::string::npos);
  EXPECT_NE(problem([](RingsOptions& o) { o.opened = 0; }).find("--opened"), std::string::npos);
  EXPECT_EQ(problem([](RingsOptions& o) { o.idle = {10'001}; }), "--idle must be 0 to 10000");
  EXPECT_EQ(problem([](RingsOptions& o) { o.seconds = -1; }), "--seconds must be 0 to 3600");
  EXPECT_NE(problem([](RingsOptions& o) { o.list_nodes = 1; }).find("--list-nodes"),
            std::string::npos);
  RingsOptions wrong = tiny_rings("doorbell");
  wrong.rings = {0};
  EXPECT_THROW(run_benchmark(wrong, {out, out}), std::runtime_error);
}

}  // namespace
}  // namespace espalier::bench

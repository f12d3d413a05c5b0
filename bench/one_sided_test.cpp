// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/benchmark.hpp"
#include "bench/report.hpp"
#include "bench/run_one_sided.hpp"

namespace espalier::bench {
namespace {

OneSidedBenchOptions tiny_alone() {
  OneSidedBenchOptions options;
  options.load.keys = 2'000;
  options.load.ops = 1'000;
  options.transports = {NodeTransport::shm};
  options.node_bytes = {512, 2048};
  return options;
}

TEST(RunOneSided, MeasuresEachSizeWithAndWithoutMemory) {
  OneSidedBenchOptions options = tiny_alone();
  options.json = true;
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_benchmark(options, {out, err}), 0);
  std::istringstream lines(out.str());
  std::vector<Json> read;
  for (std::string line; std::getline(lines, line);) read.push_back(Json::parse(line));
  ASSERT_EQ(read.size(), 5u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(read[i].at("bench"), "one-sided");
    EXPECT_EQ(read[i].at("node_bytes"), i < 2 ? 512 : 2048);
    EXPECT_GT(read[i].at("ops_per_s").get<double>(), 0);
    EXPECT_GT(read[i].at("bytes_per_op").get<double>(), 0);
    EXPECT_GT(read[i].at("get_ns_p50").get<double>(), 0);
    EXPECT_LE(read[i].at("get_ns_p50"), read[i].at("get_ns_p99"));
  }
  // Cached data needs no wait.
  for (const std::size_t i : {0U, 2U}) {
    EXPECT_GT(read[i].at("round_trips_per_op").get<double>(), 4);
    EXPECT_LE(read[i + 1].at("round_trips_per_op").get<double>(), 1.05);
  }
  EXPECT_EQ(read[4].at("measurements"), 4);
}

// The read version, which gets of a group share, the answer, and its confirmation.
TEST(RunOneSided, AWarmGetOverUdpWaitsThreeTimesAtMost) {
  OneSidedBenchOptions options = tiny_alone();
  options.transports = {NodeTransport::roce_udp};
  options.node_bytes = {2048};
  options.cache_bytes = {1 << 20};
  options.json = true;
  std::ostringstream out;
  EXPECT_EQ(run_benchmark(options, {out, out}), 0);
  const Json line = Json::parse(out.str().substr(0, out.str().find('\n')));
  EXPECT_LE(line.at("round_trips_per_op").get<double>(), 3.05);
  EXPECT_GT(line.at("round_trips_per_op").get<double>(), 2);
}

TEST(RunOneSided, PrintsATableOfScans) {
  OneSidedBenchOptions options = tiny_alone();
  options.load.ops = 200;
  options.load.scan_percent = 50;
  options.load.threads = 2;
  options.node_bytes = {1024};
  options.cache_bytes = {1 << 20};
  std::ostringstream out;
  EXPECT_EQ(run_benchmark(options, {out, out}), 0);
  EXPECT_NE(out.str().find("shm"), std::string::npos);
  EXPECT_NE(out.str().find("total: 1 measurement"), std::string::npos);
}

TEST(RunOneSided, WrongOptionsAreRefused) {
  OneSidedBenchOptions options = tiny_alone();
  options.transports = {NodeTransport::unix_socket};
  std::ostringstream out;
  EXPECT_THROW(run_benchmark(options, {out, out}), std::runtime_error);
  options = tiny_alone();
  options.node_bytes = {1000};
  EXPECT_TRUE(problem_of(options));
  options = tiny_alone();
  options.load.scan_percent = 101;
  EXPECT_TRUE(problem_of(options));
}

}  // namespace
}  // namespace espalier::bench

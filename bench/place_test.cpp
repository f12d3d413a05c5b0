// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/benchmark.hpp"
#include "bench/report.hpp"
#include "bench/run_place.hpp"

namespace espalier::bench {
namespace {

PlaceOptions tiny_place() {
  PlaceOptions options;
  options.keys = 1000;
  options.ops = 500;
  return options;
}

TEST(RunPlace, MeasuresEachShareWithAndWithoutWrites) {
  PlaceOptions options = tiny_place();
  options.json = true;
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_benchmark(options, {out, err}), 0);
  std::istringstream lines(out.str());
  std::vector<Json> read;
  for (std::string line; std::getline(lines, line);) read.push_back(Json::parse(line));
  ASSERT_EQ(read.size(), 11u);
  EXPECT_EQ(read[0].at("share_percent"), 0);
  EXPECT_EQ(read[0].at("read_percent"), 100);
  EXPECT_EQ(read[9].at("share_percent"), 100);
  EXPECT_EQ(read[9].at("read_percent"), 50);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_GT(read[i].at("ops_per_s").get<double>(), 0);
    EXPECT_GT(read[i].at("ns_p50").get<double>(), 0);
    EXPECT_LE(read[i].at("ns_p50"), read[i].at("ns_p99"));
  }
  EXPECT_EQ(read[10].at("measurements"), 10);
}

TEST(RunPlace, ReadsAloneOfBothNodes) {
  PlaceOptions options = tiny_place();
  options.one_sided = true;
  options.shares = {50};
  options.reads = {100};
  options.node_bytes = 2048;
  options.cache_bytes = 1 << 20;
  options.json = true;
  std::ostringstream out;
  EXPECT_EQ(run_benchmark(options, {out, out}), 0);
  const Json line = Json::parse(out.str().substr(0, out.str().find('\n')));
  EXPECT_EQ(line.at("access"), "one-sided");
  EXPECT_EQ(line.at("node_bytes"), 2048);
  EXPECT_EQ(line.at("cache_bytes"), 1 << 20);
  options.node_bytes = 3000;
  EXPECT_TRUE(problem_of(options));
}

TEST(RunPlace, ASlowedSecondNodeIsSaid) {
  PlaceOptions options = tiny_place();
  options.shares = {50};
  options.slowness = 2.5;
  options.repeats = 2;
  options.json = true;
  std::ostringstream out;
  EXPECT_EQ(run_benchmark(options, {out, out}), 0);
  std::istringstream lines(out.str());
  std::vector<Json> read;
  for (std::string line; std::getline(lines, line);) read.push_back(Json::parse(line));
  ASSERT_EQ(read.size(), 5u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(read[i].at("slowness"), 2.5);
    EXPECT_EQ(read[i].at("repeat"), i / 2);
  }
}

// Costs are measured, and the model follows from them.
TEST(RunPlace, TheModelIsTheSlowestSides) {
  PlaceOptions options = tiny_place();
  options.shares = {0, 50};
  options.reads = {100};
  options.slowness = 4;
  options.json = true;
  std::ostringstream out;
  EXPECT_EQ(run_benchmark(options, {out, out}), 0);
  std::istringstream lines(out.str());
  for (std::uint64_t share : options.shares) {
    std::string text;
    ASSERT_TRUE(std::getline(lines, text));
    const Json line = Json::parse(text);
    SCOPED_TRACE(text);
    const double client = line.at("client_cpu_ns_per_op");
    const double first = line.at("first_cpu_ns_per_op");
    const double second = line.at("second_cpu_ns_per_op");
    EXPECT_GT(client, 0);
    EXPECT_GT(first, 0);
    EXPECT_GE(second, 0);
    if (share == 0) {
      EXPECT_LT(second, first);
    }
    EXPECT_DOUBLE_EQ(line.at("model_ops_per_s"), 1e9 / std::max({client, first, 4 * second}));
  }
}

TEST(RunPlace, ReadsAlone) {
  PlaceOptions options = tiny_place();
  options.shares = {25};
  options.one_sided = true;
  options.json = true;
  std::ostringstream out;
  EXPECT_EQ(run_benchmark(options, {out, out}), 0);
  std::istringstream lines(out.str());
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(Json::parse(line).at("access"), "one-sided");
  EXPECT_GT(Json::parse(line).at("ops_per_s").get<double>(), 0);
}

TEST(RunPlace, PrintsATable) {
  PlaceOptions options = tiny_place();
  options.shares = {50};
  std::ostringstream out;
  EXPECT_EQ(run_benchmark(options, {out, out}), 0);
  EXPECT_NE(out.str().find("50 %"), std::string::npos);
  EXPECT_NE(out.str().find("total: 2 measurements"), std::string::npos);
}

TEST(RunPlace, WrongOptionsAreRefused) {
  PlaceOptions options = tiny_place();
  options.shares = {101};
  std::ostringstream out;
  EXPECT_THROW(run_benchmark(options, {out, out}), std::runtime_error);
  options = tiny_place();
  options.keys = 1;
  EXPECT_TRUE(problem_of(options));
  options = tiny_place();
  options.threads = 0;
  EXPECT_TRUE(problem_of(options));
  options = tiny_place();
  options.slowness = 0;
  EXPECT_TRUE(problem_of(options));
}

}  // namespace
}  // namespace espalier::bench

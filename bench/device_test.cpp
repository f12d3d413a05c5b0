// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/report.hpp"
#include "bench/run_device.hpp"

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

TEST(RunDevice, MeasuresTheHostAndTheDeviceWithAndWithoutItsBalancer) {
  DeviceBenchOptions options = tiny_device();
  options.cache_bytes = {0, 16 << 20};
  options.json = true;
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_device(options, {out, err}), 0);
  std::istringstream lines(out.str());
  std::vector<Json> read;
  for (std::string line; std::getline(lines, line);) read.push_back(Json::parse(line));
  ASSERT_EQ(read.size(), 6u);
  EXPECT_EQ(read[0].at("place"), "host");
  for (std::size_t i = 0; i < 5; ++i) EXPECT_GT(read[i].at("ops_per_s").get<double>(), 0);
  const auto number = [&](std::size_t i, const char* key) { return read[i].at(key).get<double>(); };
  EXPECT_EQ(number(1, "hit_share"), 0);
  EXPECT_GT(number(3, "hit_share"), 0.9);
  EXPECT_GT(number(1, "host_bytes_per_op"), number(3, "host_bytes_per_op"));
  EXPECT_GT(number(3, "own_bytes_per_op"), 0);
  EXPECT_EQ(number(3, "balanced_per_op"), 0);
  EXPECT_GT(number(4, "balanced_per_op"), 0);
  EXPECT_EQ(read[5].at("measurements"), 5);
}

TEST(RunDevice, PrintsATableOfScans) {
  DeviceBenchOptions options = tiny_device();
  options.load.ops = 200;
  options.load.scan_percent = 100;
  options.cache_bytes = {1 << 20};
  options.balances = {0};
  std::ostringstream out;
  EXPECT_EQ(run_device(options, {out, out}), 0);
  EXPECT_NE(out.str().find("device"), std::string::npos);
  EXPECT_NE(out.str().find("total: 2 measurements"), std::string::npos);
}

TEST(RunDevice, WrongOptionsAreRefused) {
  DeviceBenchOptions options = tiny_device();
  options.balances = {1001};
  std::ostringstream out;
  EXPECT_THROW(run_device(options, {out, out}), std::runtime_error);
  options = tiny_device();
  options.node_bytes = 100;
  EXPECT_TRUE(problem_of(options));
  options = tiny_device();
  options.load.in_flight = 0;
  EXPECT_TRUE(problem_of(options));
}

}  // namespace
}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/report.hpp"
#include "bench/run_switch.hpp"

namespace espalier::bench {
namespace {

SwitchRunOptions tiny() {
  SwitchRunOptions options;
  options.keys = 3000;
  options.value_bytes = 20;
  options.node_bytes = 1024;
  options.ops = 200;
  options.rounds = 1;
  return options;
}

TEST(RunSwitch, AGetThroughTheSwitchTakesFewerReads) {
  SwitchRunOptions options = tiny();
  options.json = true;
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_switch(options, {out, err}), 0);
  std::istringstream lines(out.str());
  std::vector<Json> read;
  for (std::string line; std::getline(lines, line);) read.push_back(Json::parse(line));
  ASSERT_EQ(read.size(), 5u);
  EXPECT_EQ(read[0].at("target"), "rpc");
  EXPECT_EQ(read[3].at("target"), "in-network");
  EXPECT_GT(read[1].at("round_trips_per_op").get<double>(), 3);
  EXPECT_LT(read[3].at("round_trips_per_op").get<double>(), 1.1);
  EXPECT_GT(read[3].at("one_trip_share").get<double>(), 0.9);
  EXPECT_EQ(read[4].at("measurements"), 4);
}

TEST(RunSwitch, WritesAgeTables) {
  SwitchRunOptions options = tiny();
  options.json = true;
  options.write_percent = 50;
  std::ostringstream out;
  EXPECT_EQ(run_switch(options, {out, out}), 0);
  std::istringstream lines(out.str());
  std::vector<Json> read;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('{')) read.push_back(Json::parse(line));
  }
  ASSERT_EQ(read.size(), 6u);
  EXPECT_EQ(read[4].at("target"), "in-network-writes");
  EXPECT_EQ(read[4].at("write_percent"), 50);
  EXPECT_EQ(read[4].at("delay_ms"), 10);
  EXPECT_GE(read[4].at("round_trips_per_op").get<double>(), 1);
  EXPECT_LE(read[4].at("one_trip_share").get<double>(), 1);
  EXPECT_FALSE(read[4].contains("ops_per_second"));
  EXPECT_EQ(read[5].at("measurements"), 5);
}

TEST(RunSwitch, PrintsATable) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_switch(tiny(), {out, err}), 0);
  EXPECT_NE(out.str().find("in-network"), std::string::npos);
  EXPECT_NE(out.str().find("total: 4 measurements"), std::string::npos);
}

TEST(RunSwitch, WrongOptionsAreRefused) {
  SwitchRunOptions options = tiny();
  options.node_address = "shm:/somewhere";
  std::ostringstream out;
  EXPECT_THROW(run_switch(options, {out, out}), std::runtime_error);
  options = tiny();
  options.node_bytes = 1000;
  EXPECT_TRUE(problem_of(options));
  options = tiny();
  options.write_percent = 91;
  EXPECT_TRUE(problem_of(options));
  options = tiny();
  options.delay_ms = 0;
  EXPECT_TRUE(problem_of(options));
  options = tiny();
  options.rounds = 0;
  EXPECT_TRUE(problem_of(options));
}

}  // namespace
}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
#include "bench/commands.hpp"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bench/report.hpp"

namespace espalier::bench {
namespace {

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

Outcome run(const std::string& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  CLI::App app;
  std::function<int()> chosen;
  const Output output{out, err};
  add_bench_commands(app, output, chosen);
  Outcome outcome;
  try {
    app.parse(arguments);
    EXPECT_TRUE(out.str().empty());  // parsing runs nothing
    outcome.exit_code = chosen();
  } catch (const CLI::ParseError& error) {
    outcome.err = error.what();
  }
  outcome.out = out.str();
  outcome.err += err.str();
  return outcome;
}

std::vector<Json> parse_lines(const std::string& out) {
  std::vector<Json> parsed;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) parsed.push_back(Json::parse(line));
  return parsed;
}

TEST(BenchCommands, YcsbRunsWhatItIsAsked) {
  const Outcome outcome =
      run("bench ycsb --target absl,lmdb --workload e --distribution uniform --keys 1000 --ops 500"
          " --value-bytes 20 --in-flight 1 --seed 9 --repeats 2 --probe-rounds 0 --json");
  EXPECT_EQ(outcome.exit_code, 0);
  const std::vector<Json> lines = parse_lines(outcome.out);
  ASSERT_FALSE(lines.empty());
  const Json& line = lines.front();
  EXPECT_EQ(line.at("target"), "absl");
  EXPECT_EQ(line.at("workload"), "e");
  EXPECT_EQ(line.at("distribution"), "uniform");
  EXPECT_EQ(line.at("keys"), 1000);
  EXPECT_EQ(line.at("value_bytes"), 20);
  EXPECT_EQ(line.at("ops"), 500);
  EXPECT_EQ(line.at("seed"), 9);
  EXPECT_EQ(line.at("hash_covers"), "exact");
}

TEST(BenchCommands, PeersMayTakeAllRequestsOnOneThread) {
  const Outcome outcome =
      run("bench ycsb --target embedded,absl --workload b --threads 2 --peers-on-one-thread"
          " --keys 1000 --ops 2000 --probe-rounds 0 --json");
  EXPECT_EQ(outcome.exit_code, 0);
  for (const Json& line : parse_lines(outcome.out)) {
    if (line.contains("total")) {
      EXPECT_EQ(line.at("end_states_equal"), true);
      continue;
    }
    EXPECT_EQ(line.at("threads"), line.at("target") == "embedded" ? 2 : 1);
    EXPECT_EQ(line.at("ops"), 2000);
  }
}

TEST(BenchCommands, TreeAndMemoryRun) {
  EXPECT_EQ(run("bench tree --target absl --experiment erase,inserts --keys 1000 --json"
                " --probe-rounds 0")
                .exit_code,
            0);
  EXPECT_EQ(run("bench memory --bytes 262144 --seconds 0 --json --probe-rounds 0").exit_code, 0);
}

TEST(BenchCommands, WrongNamesAreRefusedWithTheRightOnes) {
  for (const char* arguments :
       {"bench ycsb --target absl,redis", "bench ycsb --workload z",
        "bench ycsb --distribution normal", "bench ycsb --versions maybe",
        "bench ycsb --key-set letters", "bench tree --experiment everything"}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, -1) << arguments;
    EXPECT_NE(outcome.err.find("is not one of"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(run("bench").exit_code, -1);
  EXPECT_EQ(run("bench ycsb --no-such-flag").exit_code, -1);
}

TEST(BenchCommands, WrongValuesExitWithTwoAndASentence) {
  const Outcome outcome = run("bench ycsb --key-bytes 3");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err, "espalier: error: --key-bytes must be 8 to 460\n");
  EXPECT_EQ(run("bench memory --bytes 1").exit_code, 2);
  EXPECT_EQ(run("bench tree --in-flight 0").exit_code, 2);
}

}  // namespace
}  // namespace espalier::bench

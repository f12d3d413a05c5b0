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

TEST(BenchCommands, RingsRun) {
  const Outcome outcome =
      run("bench rings --experiment doorbell --rings 1,5 --ops 64 --seed 3 --repeat 1"
          " --json --probe-rounds 0");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(parse_lines(outcome.out).back().at("result_hashes_equal"), true);
  EXPECT_EQ(run("bench rings --experiment bell").exit_code, 2);
}

TEST(BenchCommands, RpcRunsWhatItIsAsked) {
  const Outcome outcome =
      run("bench rpc --experiment map --target embedded --threads 1 --keys 600,fit"
          " --fit-bytes 200000 --write-share 0.25 --ops 300 --in-flight 3 --key-bytes 9"
          " --value-bytes 5 --seed 7 --repeat 1 --json --probe-rounds 0");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Json> lines = parse_lines(outcome.out);
  ASSERT_EQ(lines.size(), 5u);  // two runs, two medians, the total
  EXPECT_EQ(lines[0].at("keys"), 600);
  EXPECT_GT(lines[1].at("keys"), 600);
  EXPECT_EQ(lines[0].at("write_share"), 0.25);
  EXPECT_EQ(lines[0].at("in_flight"), 3);
  EXPECT_EQ(lines[0].at("ops"), 300);
  EXPECT_EQ(lines[0].at("seed"), 7);
  EXPECT_EQ(run("bench rpc --experiment tcp").exit_code, 2);
  EXPECT_NE(run("bench rpc --keys many").err.find("fit"), std::string::npos);
}

TEST(BenchCommandsConcurrency, RpcInBatchesOverTransports) {
  const Outcome outcome =
      run("bench rpc --experiment batch --transport shm,roce-udp-send --batch 2,3 --batch-keys 50"
          " --ops 12 --repeat 1 --json --probe-rounds 0");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Json> lines = parse_lines(outcome.out);
  ASSERT_EQ(lines.size(), 17u);  // eight runs, eight medians, the total
  EXPECT_EQ(lines[0].at("transport"), "shm");
  EXPECT_EQ(lines[1].at("transport"), "roce-udp-send");
  EXPECT_EQ(lines[0].at("batch"), 2);
  EXPECT_EQ(lines[0].at("ops"), 8);
  EXPECT_EQ(lines[2].at("batch"), 3);
  EXPECT_EQ(lines[4].at("workload"), "get");
  EXPECT_EQ(lines[4].at("keys"), 50);
  EXPECT_NE(run("bench rpc --transport pigeon").err.find("roce-udp"), std::string::npos);
  EXPECT_EQ(run("bench rpc --batch 0").exit_code, 2);
}

TEST(BenchCommandsConcurrency, YcsbOverATransport) {
  const Outcome outcome =
      run("bench ycsb --target node --transport roce-udp --workload c --keys 100 --ops 100"
          " --json --probe-rounds 0");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(parse_lines(outcome.out).front().at("transport"), "roce-udp");
  EXPECT_NE(run("bench ycsb --transport pigeon").err.find("roce-udp"), std::string::npos);
}

TEST(BenchCommands, LatencyRunsWhatItIsAsked) {
  const Outcome outcome =
      run("bench latency --target embedded --experiment closed,open --workload scan"
          " --scan-items 2 --depths 3 --rates 1000000 --in-flight 8 --keys 500 --ops 200"
          " --seconds 0 --repeats 1 --json --probe-rounds 0");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Json> lines = parse_lines(outcome.out);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0].at("experiment"), "closed");
  EXPECT_EQ(lines[0].at("scan_items"), 2);
  EXPECT_EQ(lines[0].at("in_flight"), 3);
  EXPECT_EQ(lines[2].at("experiment"), "open");
  EXPECT_EQ(lines[2].at("in_flight_max"), 8);
  EXPECT_EQ(lines[2].at("offered_per_s"), 1e6);
  EXPECT_EQ(run("bench latency --workload a").exit_code, 2);
}

TEST(BenchCommands, WrongNamesAreRefusedWithTheRightOnes) {
  for (const char* arguments :
       {"bench ycsb --target absl,memcached", "bench ycsb --workload z",
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

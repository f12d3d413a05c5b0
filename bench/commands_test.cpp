// SPDX-License-Identifier: Apache-2.0
#include "bench/commands.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/temporary_folder.hpp"
#include "bench/own_node.hpp"
#include "bench/report.hpp"

namespace espalier::bench {
namespace {

struct CommandOutcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

CommandOutcome run_command(const std::string& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  CLI::App app;
  cmdline::Action chosen;
  const Output output{out, err};
  add_bench_commands(app, output, chosen);
  CommandOutcome outcome;
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

TEST(BenchCommands, NumbersAreRefusedWithWhatWasExpected) {
  const auto refused = [](const std::string& line) { return run_command(line).err; };
  EXPECT_EQ(refused("ycsb --ops -1"),
            "--ops: '-1' is not a whole number from 0 to 18446744073709551615");
  EXPECT_EQ(refused("ycsb --threads 4294967296"),
            "--threads: '4294967296' is not a whole number from 0 to 4294967295");
  EXPECT_EQ(refused("ycsb --seconds nan"), "--seconds: 'nan' is not a number of 0 or more");
  EXPECT_EQ(refused("rings --seconds inf"), "--seconds: 'inf' is not a number of 0 or more");
  EXPECT_EQ(refused("memory --bytes abc"),
            "--bytes: 'abc' is not a whole number from 0 to 18446744073709551615");
  EXPECT_EQ(refused("fabric --loss 0.1,nan"), "--loss: 'nan' is not a number of 0 or more");
  EXPECT_EQ(refused("rings --idle 1,-1"),
            "--idle: '-1' is not a whole number from 0 to 4294967295");
  EXPECT_EQ(refused("rpc --repeats -1"),
            "--repeats: '-1' is not a whole number from 0 to 4294967295");
}

TEST(BenchCommands, YcsbRunsWhatItIsAsked) {
  const CommandOutcome outcome = run_command(
      "ycsb --target absl,lmdb --workload e --distribution uniform --keys 1000 --ops 500"
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
  const CommandOutcome outcome = run_command(
      "ycsb --target embedded,absl --workload b --threads 2 --peers-on-one-thread"
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
  EXPECT_EQ(run_command("tree --target absl --experiment erase,inserts --keys 1000 --json"
                        " --probe-rounds 0")
                .exit_code,
            0);
  EXPECT_EQ(run_command("memory --bytes 262144 --seconds 0 --json --probe-rounds 0").exit_code, 0);
}

TEST(BenchCommands, RingsRun) {
  const CommandOutcome outcome = run_command(
      "rings --experiment doorbell --rings 1,5 --ops 64 --seed 3 --repeat 1"
      " --json --probe-rounds 0");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(parse_lines(outcome.out).back().at("result_hashes_equal"), true);
  EXPECT_EQ(run_command("rings --experiment bell").exit_code, 2);
  EXPECT_EQ(run_command("tree --experiment everything").exit_code, 2);
}

TEST(BenchCommands, RpcRunsWhatItIsAsked) {
  const CommandOutcome outcome = run_command(
      "rpc --experiment map --target embedded --threads 1 --keys 600,fit"
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
  EXPECT_EQ(run_command("rpc --experiment tcp").exit_code, 2);
  EXPECT_NE(run_command("rpc --keys many").err.find("fit"), std::string::npos);
}

TEST(BenchCommandsConcurrency, RpcInBatchesOverTransports) {
  const CommandOutcome outcome = run_command(
      "rpc --experiment batch --transport shm,roce-udp-send --batch 2,3 --batch-keys 50"
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
  EXPECT_NE(run_command("rpc --transport pigeon").err.find("roce-udp"), std::string::npos);
  EXPECT_EQ(run_command("rpc --batch 0").exit_code, 2);
}

TEST(BenchCommandsConcurrency, YcsbOverATransport) {
  const CommandOutcome outcome = run_command(
      "ycsb --target node --transport roce-udp --workload c --keys 100 --ops 100"
      " --json --probe-rounds 0");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(parse_lines(outcome.out).front().at("transport"), "roce-udp");
  EXPECT_NE(run_command("ycsb --transport pigeon").err.find("roce-udp"), std::string::npos);
}

// A node that asks who comes, and is told by the path of a file, once, for all connections.
TEST(BenchCommands, NodesWithSecretsAreMeasuredByAFileWithOne) {
  const base::TemporaryFolder folder;
  const std::string path = (folder.path() / "admin").string();
  std::ofstream(path) << "bench admin 0" << std::string(62, 'a') << "0\n";
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  node::Config config = own_node_config();
  config.node.pin = false;
  config.node.fabric = "roce://127.0.0.1:0/1";
  config.clients.secrets = path;
  const auto node = start_own_node(config);
  const std::string line =
      "ycsb --target node --workload c --keys 100 --ops 100 --seconds 0 --repeats 1"
      " --probe-rounds 0 --json --node-address " +
      node->fabric_addresses().front();
  EXPECT_THROW(run_command(line), std::runtime_error);  // the node wants a secret
  const CommandOutcome known = run_command(line + " --secret-file " + path);
  unsetenv("ESPALIER_SECRET_FILE");
  EXPECT_EQ(known.exit_code, 0) << known.err;
  EXPECT_EQ(parse_lines(known.out).back().at("result_hashes_equal"), true) << known.out;
}

TEST(BenchCommands, LatencyRunsWhatItIsAsked) {
  const CommandOutcome outcome = run_command(
      "latency --target embedded --experiment closed,open --workload scan"
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
  EXPECT_EQ(run_command("latency --workload a").exit_code, 2);
}

TEST(BenchCommands, WrongNamesAreRefusedWithTheRightOnes) {
  for (const char* arguments :
       {"ycsb --target absl,memcached", "ycsb --workload z", "ycsb --distribution normal",
        "ycsb --versions maybe", "ycsb --key-set letters", "tree --target everything"}) {
    const CommandOutcome outcome = run_command(arguments);
    EXPECT_EQ(outcome.exit_code, -1) << arguments;
    EXPECT_NE(outcome.err.find("is not one of"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(run_command("").exit_code, -1);
  EXPECT_EQ(run_command("ycsb --no-such-flag").exit_code, -1);
}

TEST(BenchCommands, WrongValuesExitWithTwoAndASentence) {
  const CommandOutcome outcome = run_command("ycsb --key-bytes 3");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err, "espalier-bench: error: --key-bytes must be 8 to 460\n");
  EXPECT_EQ(run_command("memory --bytes 1").exit_code, 2);
  EXPECT_EQ(run_command("tree --in-flight 0").exit_code, 2);
}

/// The whole program.
CommandOutcome run_program(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  const int exit_code = bench::run(arguments, Output{out, err});
  return {exit_code, out.str(), err.str()};
}

TEST(BenchProgram, HelpsAndTellsItsVersion) {
  const CommandOutcome help = run_program({"--help"});
  EXPECT_EQ(help.exit_code, cmdline::kOk);
  EXPECT_NE(help.out.find("\n  ycsb "), std::string::npos) << help.out;
  EXPECT_EQ(run_program({"ycsb", "--help"}).out, run_program({"help", "ycsb"}).out);
  EXPECT_TRUE(run_program({"--version"}).out.starts_with("espalier-bench "));
  EXPECT_NE(run_program({"completion", "bash"}).out.find("' ycsb --workload'"), std::string::npos);
}

TEST(BenchProgram, RunsABenchmarkAndRefusesAWrongLine) {
  const CommandOutcome memory = run_program(
      {"memory", "--bytes", "262144", "--seconds", "0", "--json", "--probe-rounds", "0"});
  EXPECT_EQ(memory.exit_code, cmdline::kOk) << memory.err;
  EXPECT_EQ(parse_lines(memory.out).front().at("bench"), "memory");
  const CommandOutcome wrong = run_program({"ycsb", "--thraeds", "2"});
  EXPECT_EQ(wrong.exit_code, cmdline::kUsage);
  EXPECT_EQ(wrong.err,
            "espalier-bench: error: unknown option '--thraeds'\n"
            "  Did you mean --threads? See espalier-bench ycsb --help.\n");
  EXPECT_EQ(run_program({}).err,
            "espalier-bench: error: which command?\n  See espalier-bench --help.\n");
}

}  // namespace
}  // namespace espalier::bench

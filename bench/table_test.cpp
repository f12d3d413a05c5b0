// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "bench/benchmark.hpp"
#include "bench/run_table.hpp"
#include "bench/testing/point_lines.hpp"

namespace espalier::bench {
namespace {

TableOptions tiny_table(const std::string& experiment) {
  TableOptions options;
  options.experiments = {experiment};
  options.table_bytes = std::uint64_t{1} << 20;
  options.transports = {NodeTransport::unix_socket};
  options.groups = {16, 65536};
  options.clients = {2};
  options.short_queries = 5;
  options.repeats = 1;
  options.json = true;
  options.probe_rounds = 0;
  return options;
}

PointLines table_lines(const TableOptions& options) {
  PointLines lines =
      slots_of("table", [&](const Output& output) { return run_benchmark(options, output); });
  EXPECT_EQ(lines.exit_code, 0);
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
  for (const Json& line : lines.runs) {
    EXPECT_EQ(line.at("complete"), true) << line;
    EXPECT_GT(line.at("ops_per_s"), 0) << line;
  }
  return lines;
}

std::set<std::string> targets_of(const PointLines& lines) {
  std::set<std::string> targets;
  for (const Json& line : lines.runs) targets.insert(line.at("target"));
  return targets;
}

// The run itself checks that all ways give the same rows (result_hashes_equal).

TEST(RunTable, SelectsInEveryWay) {
  TableOptions options = tiny_table("select");
  options.transports.push_back(NodeTransport::shm);
  const PointLines lines = table_lines(options);
  EXPECT_EQ(targets_of(lines),
            (std::set<std::string>{"read", "copy", "stage", "scalar", "local", "remote", "pull",
                                   "pushed", "chunks", "buffers"}));
  for (const Json& line : lines.runs) {
    if (line.value("percent", 0) != 100) continue;
    EXPECT_EQ(line.at("result_rows"), 16384) << line;
  }
  for (const Json& line : lines.runs_with("target", "chunks")) {
    EXPECT_EQ(line.at("buffer_bytes_per_op"), 0) << line;
  }
  for (const Json& line : lines.runs_with("target", "buffers")) {
    EXPECT_EQ(line.at("transport"), "shm") << line;
    EXPECT_LE(line.at("buffer_bytes_per_op"), line.at("bytes_per_op")) << line;
    // All but the content of one stage, which comes with the answer.
    if (line.at("percent") != 100) continue;
    EXPECT_GT(line.at("buffer_bytes_per_op"), 59) << line;
  }
  for (const Json& line : lines.runs_with("target", "stage")) {
    EXPECT_GT(line.at("of_read"), 0) << line;
    EXPECT_GT(line.at("longest_step_us"), 0) << line;
    EXPECT_EQ(line.at("bytes_per_op"), 64) << line;
  }
  for (const Json& line : lines.runs_with("target", "pull")) {
    EXPECT_EQ(line.at("bytes_per_op"), 64) << line;
    // With READs the node does nothing.
    if (line.at("transport") != "shm") continue;
    EXPECT_EQ(line.at("node_busy_ms"), 0) << line;
  }
}

TEST(RunTable, GroupsBesideAbsl) {
  TableOptions options = tiny_table("group");
  options.targets = {"stage", "absl", "pushed"};
  const PointLines lines = table_lines(options);
  EXPECT_EQ(lines.runs.size(), 6u);
  for (const Json& line : lines.runs) {
    if (line.value("groups", 0) != 16 || line.at("target") == "absl") continue;
    EXPECT_EQ(line.at("result_rows"), 16) << line;
  }
  options = tiny_table("distinct");
  options.targets = {"stage", "absl"};
  EXPECT_EQ(table_lines(options).runs.size(), 4u);
}

TEST(RunTable, ProjectsByLinesAndByRows) {
  TableOptions options = tiny_table("project");
  options.targets = {"stage"};
  const PointLines lines = table_lines(options);
  EXPECT_EQ(lines.runs.size(), 5u);
  for (const Json& line : lines.runs) {
    if (line.at("addressing") != "smart") continue;
    EXPECT_EQ(line.at("bytes_per_op"), 64) << line;
  }
}

TEST(RunTable, SearchesWithRegularExpressionsBesideRe2) {
  const PointLines lines = table_lines(tiny_table("regex"));
  EXPECT_EQ(targets_of(lines), (std::set<std::string>{"read", "copy", "stage", "re2", "local",
                                                      "remote", "pull", "pushed"}));
  std::set<std::string> patterns;
  for (const Json& line : lines.runs_with("target", "stage")) {
    patterns.insert(line.at("pattern"));
    EXPECT_GT(line.at("result_rows"), 4096 * 0.45) << line;
    EXPECT_LT(line.at("result_rows"), 4096 * 0.55) << line;
  }
  EXPECT_EQ(patterns.size(), 4u);
}

TEST(RunTable, DecryptsInEveryWay) {
  TableOptions options = tiny_table("decrypt");
  options.transports.push_back(NodeTransport::shm);
  const PointLines lines = table_lines(options);
  EXPECT_EQ(targets_of(lines), (std::set<std::string>{"read", "copy", "evp", "stage", "local",
                                                      "remote", "pull", "pushed"}));
  for (const Json& line : lines.runs) {
    if (line.value("percent", 0) != 100) continue;
    EXPECT_EQ(line.at("result_rows"), 16384) << line;
  }
  // The rows equal those of the same seed without encryption.
  TableOptions plain = tiny_table("select");
  plain.targets = {"stage"};
  const PointLines beside = table_lines(plain);
  const auto hash_of = [](const PointLines& of, std::string_view key, int percent) {
    for (const Json& line : of.runs_with("target", "stage")) {
      if (line.value("percent", 0) == percent) return line.at(std::string(key));
    }
    return Json();
  };
  EXPECT_EQ(hash_of(lines, "result_hash", 25), hash_of(beside, "result_hash", 25));
  EXPECT_NE(hash_of(lines, "result_hash", 25), Json());
}

TEST(RunTable, AnswersFewRowsAndSeveralClients) {
  const PointLines few = table_lines(tiny_table("response"));
  EXPECT_EQ(targets_of(few), (std::set<std::string>{"local", "remote", "pushed"}));
  for (const Json& line : few.runs) EXPECT_GT(line.at("ns_p50"), 0) << line;
  const PointLines together = table_lines(tiny_table("clients"));
  EXPECT_EQ(targets_of(together), (std::set<std::string>{"local", "remote", "pull", "pushed"}));
  for (const Json& line : together.runs) {
    EXPECT_EQ(line.at("clients"), 2);
    EXPECT_GE(line.at("slowest_to_fastest"), 1);
    EXPECT_EQ(line.at("result_hash"), together.runs[0].at("result_hash")) << line;
    EXPECT_EQ(line.value("get_ns_p99_idle", 0.0) > 0, line.at("target") == "pushed") << line;
  }
}

TEST(RunTable, SaysWhatIsWrongWithItsOptions) {
  EXPECT_EQ(problem_of(tiny_table("select")), std::nullopt);
  EXPECT_TRUE(problem_of(tiny_table("join")));
  TableOptions options = tiny_table("group");
  options.groups = {17};
  EXPECT_TRUE(problem_of(options));
  options = tiny_table("group");
  options.targets = {"elsewhere"};
  EXPECT_TRUE(problem_of(options));
  options = tiny_table("group");
  options.transports = {NodeTransport::roce_udp};
  EXPECT_TRUE(problem_of(options));
  options = tiny_table("clients");
  options.clients = {0};
  EXPECT_TRUE(problem_of(options));
}

}  // namespace
}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

#include "bench/benchmark.hpp"
#include "bench/random_lines.hpp"
#include "bench/redis_server.hpp"
#include "bench/run_hash.hpp"
#include "bench/testing/point_lines.hpp"

namespace espalier::bench {
namespace {

HashBenchOptions tiny_hash() {
  HashBenchOptions options;
  options.targets = {HashTargetKind::embedded, HashTargetKind::absl};
  options.repeats = 1;
  options.pairs = 3000;
  options.ops = 600;
  options.batches = {1, 64};
  options.probe_rounds = 0;
  options.probe_seconds = 0;
  options.json = true;
  return options;
}

PointLines hash_lines(const HashBenchOptions& options) {
  return slots_of("hash", [&](const Output& output) { return run_benchmark(options, output); });
}

TEST(RunHash, AnExperimentThatTheTargetsCannotDoFails) {
  HashBenchOptions options = tiny_hash();
  options.targets = {HashTargetKind::absl};
  for (const char* const experiment : {"growth", "lines", "signals"}) {
    options.experiments = {experiment};
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(run_benchmark(options, {out, err}), 1);
    EXPECT_NE(err.str().find(std::string("experiment '") + experiment), std::string::npos)
        << err.str();
  }
}

TEST(RunHashConcurrency, OurWaysAnswerAsAPeerDoes) {
  HashBenchOptions options = tiny_hash();
  options.targets = {HashTargetKind::embedded,    HashTargetKind::unix_rings,
                     HashTargetKind::rings_write, HashTargetKind::rings_send,
                     HashTargetKind::device,      HashTargetKind::one_sided,
                     HashTargetKind::absl};
  options.experiments = {"peak", "latency", "batches"};
  const PointLines lines = hash_lines(options);
  EXPECT_EQ(lines.exit_code, 0);
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
  // peak: two distributions and two mixes; latency: two mixes and two batches; two batches.
  EXPECT_EQ(lines.runs_with("target", "device").size(), 10u);
  EXPECT_EQ(lines.runs_with("workload", "random-lines").size(), 3u);
  EXPECT_EQ(lines.runs_with("workload", "noop").size(), 3u);
  ASSERT_EQ(lines.runs.size(), 76u);
  for (const Json& line : lines.runs) {
    if (line.at("target") == "machine" || line.at("workload") == "noop") continue;
    EXPECT_EQ(line.at("ops"), 600);
    EXPECT_GE(line.at("percent_of_random_lines").get<double>(), 0);
    EXPECT_EQ(line.contains("ns_p99"), line.at("experiment") == "latency");
    const std::string target = line.at("target");
    EXPECT_EQ(line.contains("bytes_per_pair"), target != "absl") << target;
    ASSERT_EQ(line.contains("waits_per_get"), target == "one-sided") << target;
    if (target != "one-sided") continue;
    EXPECT_GT(line.at("waits_per_get").get<double>(), 0.9);
    EXPECT_LT(line.at("waits_per_get").get<double>(), 4);
    EXPECT_EQ(line.at("by_rings_per_get"), 0);
  }
}

TEST(RunHash, WithoutVersionsItAnswersTheSame) {
  HashBenchOptions options = tiny_hash();
  options.versions = false;
  options.experiments = {"peak"};
  const PointLines lines = hash_lines(options);
  EXPECT_EQ(lines.exit_code, 0);
  EXPECT_EQ(lines.runs.size(), 9u);
}

TEST(RunHash, GrowthTellsOfItsLongestPutAndOfMemoryForAPair) {
  HashBenchOptions options = tiny_hash();
  options.experiments = {"growth"};
  const PointLines lines = hash_lines(options);
  EXPECT_EQ(lines.exit_code, 0);
  ASSERT_EQ(lines.runs.size(), 1u);
  const Json& line = lines.runs.front();
  EXPECT_EQ(line.at("ops"), 3000);
  EXPECT_GT(line.at("longest_put_cpu_us").get<double>(), 0);
  EXPECT_GE(line.at("bytes_per_pair").get<double>(), 64);
  EXPECT_GE(line.at("bytes_per_pair_worst").get<double>(), line.at("bytes_per_pair").get<double>());
}

// A get touches its bin and its record, which is two lines long. A put touches its bin, the old
// record, of which it reads the key alone, and the new one; all other lines are near, except those
// that it frees later.
TEST(RunHash, LinesAreThoseThatAGetAndAPutTouch) {
  HashBenchOptions options = tiny_hash();
  options.experiments = {"lines"};
  options.ops = 200;
  for (const bool versions : {true, false}) {
    options.versions = versions;
    const PointLines lines = hash_lines(options);
    EXPECT_EQ(lines.exit_code, 0);
    ASSERT_EQ(lines.runs.size(), 2u);
    const Json& get = lines.runs.front();
    EXPECT_GE(get.at("bin_lines").get<double>(), 1);
    EXPECT_GE(get.at("record_lines_read").get<double>(), 2);
    EXPECT_LT(get.at("lines_per_get").get<double>(), 3.3);
    EXPECT_EQ(get.at("record_lines_placed"), 0);
    const Json& put = lines.runs.back();
    EXPECT_EQ(put.at("record_lines_placed"), 2);
    EXPECT_GE(put.at("record_lines_read").get<double>(), 1);
    EXPECT_LE(put.at("record_lines_read").get<double>(), 1.5);
    EXPECT_LT(put.at("lines_per_put").get<double>(), 4.6);
    EXPECT_EQ(put.at("link_lines").get<double>() > 0, versions);
  }
}

// One doorbell for 64, and a completion for each k-th.
TEST(RunHashConcurrency, SignalsTellOfDoorbellsAndCompletionsForAnAnswer) {
  HashBenchOptions options = tiny_hash();
  options.experiments = {"signals"};
  options.targets = {HashTargetKind::rings_write};
  options.ops = 6400;
  const PointLines lines = hash_lines(options);
  EXPECT_EQ(lines.exit_code, 0);
  ASSERT_EQ(lines.runs.size(), 7u);
  for (const Json& line : lines.runs) {
    const double every = line.at("signal_every").get<double>();
    EXPECT_GT(line.at("completions_per_answer").get<double>(), 0.9 / every);
    EXPECT_GE(line.at("doorbells_per_answer").get<double>(), 1.0 / 64);
    EXPECT_LE(line.at("completions_per_answer").get<double>(),
              1 / every + line.at("doorbells_per_answer").get<double>());
  }
}

// A missing installation is reported, and the rest is measured.
TEST(RunHash, ATargetThatCannotRunIsSaid) {
  HashBenchOptions options = tiny_hash();
  options.experiments = {"peak"};
  options.targets = {HashTargetKind::absl, HashTargetKind::memcached, HashTargetKind::boost};
  std::ostringstream out;
  std::ostringstream err;
  const int code = run_benchmark(options, {out, err});
  std::set<std::string> targets;
  std::istringstream texts(out.str());
  for (std::string text; std::getline(texts, text);) {
    const Json line = Json::parse(text);
    if (line.contains("target")) targets.insert(line.at("target").get<std::string>());
    if (line.contains("target") && line.at("target") == "memcached") {
      const auto settings = line.at("settings").get<std::string>();
      EXPECT_NE(settings.find(" MiB on huge pages"), std::string::npos) << settings;
      EXPECT_EQ(settings.find(" of 0 MiB"), std::string::npos) << settings;
    }
    if (line.contains("total")) {
      EXPECT_EQ(line.at("result_hashes_equal"), true);
    }
  }
  EXPECT_TRUE(targets.contains("absl"));
  for (const std::string peer : {"memcached", "boost"}) {
    const bool said = err.str().find("target " + peer + ": ") != std::string::npos;
    EXPECT_NE(said, targets.contains(peer)) << err.str();
  }
  EXPECT_EQ(code, err.str().empty() ? 0 : 1);
  const bool installed = find_program("memcached", std::getenv("PATH")).has_value();
  EXPECT_EQ(targets.contains("memcached"), installed) << err.str();
}

TEST(RunHash, WrongOptionsAreRefused) {
  HashBenchOptions options = tiny_hash();
  options.batches = {0};
  EXPECT_TRUE(problem_of(options));
  options = tiny_hash();
  options.pairs = 0;
  EXPECT_TRUE(problem_of(options));
  options = tiny_hash();
  options.experiments = {"none"};
  EXPECT_TRUE(problem_of(options));
  std::ostringstream out;
  EXPECT_THROW(static_cast<void>(run_benchmark(options, {out, out})), std::runtime_error);
}

TEST(HashWork, KeysAreTextAndDiffer) {
  const HashPairs pairs(2000, 7);
  std::set<std::string> keys;
  for (std::uint64_t i = 0; i < pairs.count(); ++i) {
    const HashPairs::Key key = pairs.key(i);
    const std::string text(key.data(), key.size());
    EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos);
    keys.insert(text);
  }
  EXPECT_EQ(keys.size(), pairs.count());
  for (const auto& name_of : all_hash_targets()) {
    EXPECT_EQ(parse_hash_target(name(name_of)), name_of);
  }
  EXPECT_FALSE(parse_hash_target("none"));
}

TEST(RandomLines, HaveARate) {
  const RandomLineRate rate = random_line_rate(std::size_t{1} << 20, 0, 1);
  EXPECT_GT(rate.lines_per_s, 0);
  EXPECT_GT(rate.distance, 0u);
  EXPECT_GT(rate.checksum, 0u);
}

}  // namespace
}  // namespace espalier::bench

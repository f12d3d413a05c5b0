// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/benchmark.hpp"
#include "bench/run_latency.hpp"
#include "bench/testing/point_lines.hpp"
#include "bench/workers.hpp"

namespace espalier::bench {
namespace {

LatencyOptions tiny_latency(const std::string& experiment) {
  LatencyOptions options;
  options.experiments = {experiment};
  options.targets = {TargetKind::node, TargetKind::embedded};
  options.keys = 3000;
  options.ops = 2000;
  options.seconds = 0;
  options.repeats = 2;
  options.json = true;
  options.probe_rounds = 0;
  options.depths = {1, 4};
  options.loads = {0.5, 1.1};
  return options;
}

PointLines latency_lines(const LatencyOptions& options) {
  PointLines lines =
      slots_of("latency", [&](const Output& output) { return run_benchmark(options, output); });
  EXPECT_EQ(lines.exit_code, 0);
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
  EXPECT_EQ(lines.runs.size(), lines.medians.size() * options.repeats);
  for (const Json& line : lines.runs) {
    EXPECT_EQ(line.at("ops"), 2000) << line;
    EXPECT_LE(line.at("ns_p50"), line.at("ns_p99"));
    EXPECT_LE(line.at("ns_p99"), line.at("ns_p999"));
  }
  return lines;
}

std::string hash_of(const Json& line) { return line.at("result_hash"); }

TEST(RunLatency, ClosedByRequestsInFlight) {
  const PointLines lines = latency_lines(tiny_latency("closed"));
  ASSERT_EQ(lines.medians.size(), 8u);  // depths x workloads x targets
  EXPECT_EQ(lines.medians[0].at("workload"), "c");
  EXPECT_EQ(lines.medians[0].at("target"), "node");
  EXPECT_EQ(lines.medians[1].at("target"), "embedded");
  EXPECT_EQ(lines.medians[2].at("workload"), "scan");
  EXPECT_EQ(lines.medians[2].at("scan_items"), 3);
  EXPECT_EQ(lines.medians[4].at("in_flight"), 4);
  // All depths and both targets had the same requests, and answers.
  EXPECT_EQ(hash_of(lines.runs[0]), hash_of(lines.runs[5]));
  EXPECT_NE(hash_of(lines.runs[0]), hash_of(lines.runs[2]));
}

TEST(RunLatencyConcurrency, OpenByRequestsPerSecond) {
  LatencyOptions options = tiny_latency("open");
  options.rates = {50'000, 2e8};  // and one that no target can reach
  options.threads = 2;
  const PointLines lines = latency_lines(options);
  ASSERT_EQ(lines.medians.size(), 8u);
  for (const Json& line : lines.runs) {
    EXPECT_EQ(line.at("offered_per_s"), line.at("rate"));
    EXPECT_EQ(line.at("in_flight_max"), 256);
  }
  // The last of 1000 requests of a thread is due after about 40 ms, and none begins before.
  for (const Json& line : lines.runs_with("rate", 50'000)) EXPECT_GT(line.at("seconds"), 0.02);
}

TEST(RunLatency, OpenBySharesOfTheMost) {
  const PointLines lines = latency_lines(tiny_latency("open"));
  ASSERT_EQ(lines.medians.size(), 8u);
  for (const Json& half : lines.runs_with("load", 0.5)) {
    for (const Json& full : lines.runs_with("load", 1.1)) {
      if (half.at("workload") != full.at("workload") || half.at("target") != full.at("target")) {
        continue;
      }
      // Both are shares of one measurement.
      EXPECT_NEAR(full.at("offered_per_s").get<double>() / half.at("offered_per_s").get<double>(),
                  2.2, 0.001);
    }
  }
}

TEST(RunLatency, ShortPointsAskLess) {
  LatencyOptions options = tiny_latency("open");
  options.targets = {TargetKind::embedded};
  options.rates = {10'000};
  options.seconds = 0.01;
  options.repeats = 1;
  const PointLines lines =
      slots_of("latency", [&](const Output& output) { return run_benchmark(options, output); });
  ASSERT_EQ(lines.runs.size(), 2u);
  for (const Json& line : lines.runs) EXPECT_EQ(line.at("ops"), 100);
}

TEST(Arrivals, RiseAndComeAsOftenAsIsAsked) {
  const std::vector<std::uint64_t> due_ns = arrivals(100'000, 1e6, 7);
  ASSERT_EQ(due_ns.size(), 100'000u);
  EXPECT_TRUE(std::ranges::is_sorted(due_ns));
  EXPECT_NEAR(static_cast<double>(due_ns.back()), 1e8, 2e6);  // six times the deviation
  // With exponential gaps about 1 - 1/e of them are shorter than the mean.
  std::size_t shorter = 0;
  for (std::size_t i = 1; i < due_ns.size(); ++i) shorter += due_ns[i] - due_ns[i - 1] < 1000;
  EXPECT_NEAR(static_cast<double>(shorter), 63'212, 1000);
  EXPECT_EQ(arrivals(1000, 1e6, 7), arrivals(1000, 1e6, 7));
  EXPECT_NE(arrivals(1000, 1e6, 7), arrivals(1000, 1e6, 8));
}

// Requests that are all due at the same time wait for each other, and the waiting counts.
TEST(RunPaced, LatenciesCountFromWhenRequestsWereDue) {
  for (const TargetKind kind : {TargetKind::embedded, TargetKind::node}) {
    TargetOptions options;
    options.in_flight = 2;
    const std::unique_ptr<Target> target = make_target(kind, options);
    const std::unique_ptr<TargetSession> session = target->open_session();
    constexpr std::uint64_t kCount = 500;
    std::vector<Request> requests(kCount);
    for (std::uint64_t i = 0; i < kCount; ++i) {
      requests[i].op = Op::get;
      requests[i].tag = i;
      requests[i].key = "nothing";
    }
    const std::vector<std::uint64_t> at_once(kCount, 0);
    Answers answers;
    Latencies waited;
    session->run_paced(requests, at_once, answers, waited);
    EXPECT_EQ(answers.errors(), 0u);
    ASSERT_EQ(waited.count(), kCount);
    // Two at a time: counted from their starts, they would sum up to twice the whole at most.
    EXPECT_GT(waited.mean() * static_cast<double>(kCount), 2.0 * static_cast<double>(waited.max()));
    // None begins before it is due.
    std::vector<std::uint64_t> late(kCount, 0);
    late.back() = 3'000'000;
    Latencies last;
    const base::Stopwatch watch;
    session->run_paced(requests, late, answers, last);
    EXPECT_GE(watch.elapsed_ns(), 3'000'000u);
    EXPECT_EQ(last.count(), kCount);
  }
}

TEST(RunPaced, TargetsOfOneCallAtATimeRefuse) {
  const std::unique_ptr<Target> target =
      make_target(TargetKind::absl, TargetOptions{.items_max = 4});
  Answers answers;
  Latencies latencies;
  EXPECT_THROW(target->open_session()->run_paced({}, {}, answers, latencies), std::runtime_error);
}

TEST(RunLatency, RefusesOptionsWithASentence) {
  const auto problem = [](auto change) {
    LatencyOptions options = tiny_latency("closed");
    change(options);
    return problem_of(options).value_or("");
  };
  EXPECT_EQ(problem([](LatencyOptions&) {}), "");
  EXPECT_EQ(problem([](LatencyOptions& o) { o.experiments = {"ajar"}; }),
            "--experiment ajar: there are closed, open");
  EXPECT_EQ(problem([](LatencyOptions& o) { o.workloads = {Workload::a}; }),
            "--workload a: it writes, and all points share one map");
  EXPECT_NE(problem([](LatencyOptions& o) { o.targets = {TargetKind::lmdb}; }).find("--target"),
            std::string::npos);
  EXPECT_EQ(problem([](LatencyOptions& o) { o.depths = {0}; }), "--depths must be 1 to 256");
  EXPECT_EQ(problem([](LatencyOptions& o) { o.loads = {0}; }), "--loads must be 0.001 to 10");
  EXPECT_NE(problem([](LatencyOptions& o) { o.rates = {0.5}; }).find("--rates"), std::string::npos);
  EXPECT_NE(problem([](LatencyOptions& o) { o.in_flight = 1; }).find("--in-flight"),
            std::string::npos);
  EXPECT_NE(problem([](LatencyOptions& o) { o.keys = 1; }).find("--keys"), std::string::npos);
}

}  // namespace
}  // namespace espalier::bench

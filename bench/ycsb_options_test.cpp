// SPDX-License-Identifier: Apache-2.0
#include "bench/ycsb_options.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bench/benchmark.hpp"

namespace espalier::bench {
namespace {

TEST(YcsbOptions, DefaultsAreFine) { EXPECT_EQ(problem_of(YcsbOptions()), std::nullopt); }

TEST(YcsbOptions, ProblemsNameTheFlag) {
  const std::vector<std::pair<const char*, std::function<void(YcsbOptions&)>>> problems{
      {"--target", [](YcsbOptions& options) { options.targets.clear(); }},
      {"--keys", [](YcsbOptions& options) { options.keys = 3; }},
      {"--keys", [](YcsbOptions& options) { options.keys = 5'000'000'000; }},
      {"--key-bytes", [](YcsbOptions& options) { options.key_bytes = 7; }},
      {"--key-bytes", [](YcsbOptions& options) { options.key_bytes = 461; }},
      {"--key-file", [](YcsbOptions& options) { options.key_source = KeySource::file; }},
      {"--value-bytes", [](YcsbOptions& options) { options.value_bytes = 2'000'000; }},
      {"--threads", [](YcsbOptions& options) { options.threads = 0; }},
      {"--in-flight", [](YcsbOptions& options) { options.in_flight = 0; }},
      {"--in-flight", [](YcsbOptions& options) { options.in_flight = 257; }},
      {"--ops", [](YcsbOptions& options) { options.ops = 5'000'000'000; }},
      {"--repeats", [](YcsbOptions& options) { options.repeats = 0; }},
      {"--seconds", [](YcsbOptions& options) { options.seconds = -1; }},
      {"--scan-items", [](YcsbOptions& options) { options.scan_items = 0; }},
      {"--scan-share", [](YcsbOptions& options) { options.shares.scans = 1.5; }},
      {"--write-share", [](YcsbOptions& options) { options.shares.writes = -0.1; }},
      {"--node-bytes", [](YcsbOptions& options) { options.node_bytes = 1000; }},
      {"--redis-address", [](YcsbOptions& options) { options.redis_address = "localhost"; }},
      {"--log-bytes", [](YcsbOptions& options) { options.log_bytes = 100; }},
      {"--balance", [](YcsbOptions& options) { options.balance = 1001; }},
      {"--slow", [](YcsbOptions& options) { options.slowness = 0.9; }},
      {"--target node",
       [](YcsbOptions& options) {
         options.targets = {TargetKind::device};
         options.node_address = "unix:/run/device.sock";
       }},
      {"--subscribers", [](YcsbOptions& options) { options.subscribers = 1000; }},
      {"--transport",
       [](YcsbOptions& options) {
         options.node_address = "unix:/run/node.sock";
         options.transport = NodeTransport::roce_udp;
       }},
      {"--transport",
       [](YcsbOptions& options) {
         options.targets = {TargetKind::embedded, TargetKind::one_sided};
         options.transport = NodeTransport::unix_socket;
       }},
      {"--transport",
       [](YcsbOptions& options) {
         options.targets = {TargetKind::one_sided};
         options.transport = NodeTransport::ofi_tcp;
       }},
      {"--node-address",
       [](YcsbOptions& options) {
         options.targets = {TargetKind::one_sided};
         options.node_address = "unix:/run/node.sock";
       }},
      {"--redis-tcp",
       [](YcsbOptions& options) {
         options.redis_address = "unix:/run/redis.sock";
         options.redis_tcp = true;
       }},
  };
  for (const auto& [flag, spoil] : problems) {
    YcsbOptions options;
    spoil(options);
    const auto problem = problem_of(options);
    ASSERT_TRUE(problem.has_value()) << flag;
    EXPECT_NE(problem->find(flag), std::string::npos) << *problem;
  }
}

TEST(YcsbOptions, ScansNeedEnoughKeys) {
  YcsbOptions options;
  options.workload = Workload::scan;
  options.scan_items = 10;
  options.keys = 9;
  EXPECT_THROW(plan_of(options, *make_keys(options)), std::runtime_error);
  options.keys = 10;
  EXPECT_EQ(plan_of(options, *make_keys(options)).scan_items, 10U);
}

TEST(YcsbOptions, WorkloadsThatCoverTheKeysTakeTheirNumber) {
  YcsbOptions options;
  options.keys = 1600;
  options.ops = 5;
  options.workload = Workload::load;
  EXPECT_EQ(plan_of(options, *make_keys(options)).ops, 1600U);
  options.workload = Workload::erase;
  const RequestPlan plan = plan_of(options, *make_keys(options));
  EXPECT_EQ(plan.ops + plan.tail_ops, 1600U);
}

TEST(YcsbOptions, AnswersAreExactWhereNothingRunsBesideAWrite) {
  YcsbOptions options;
  options.workload = Workload::c;
  EXPECT_TRUE(answers_are_exact(options));
  options.workload = Workload::a;
  EXPECT_FALSE(answers_are_exact(options));
  options.in_flight = 1;
  EXPECT_TRUE(answers_are_exact(options));
  options.threads = 2;
  EXPECT_FALSE(answers_are_exact(options));
}

TEST(YcsbOptions, AMissingKeyFileIsSaid) {
  YcsbOptions options;
  options.key_source = KeySource::file;
  options.key_file = "/no/such/file";
  EXPECT_THROW(make_keys(options), std::runtime_error);
}

}  // namespace
}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/benchmark.hpp"
#include "bench/run_rpc.hpp"
#include "bench/testing/point_lines.hpp"
#include "bench/testing/redis_fixture.hpp"

namespace espalier::bench {
namespace {

RpcOptions tiny_rpc(const std::string& experiment) {
  RpcOptions options;
  options.experiments = {experiment};
  options.keys = {500, 2000};
  options.ops = 1000;
  options.repeats = 2;
  options.json = true;
  options.probe_rounds = 0;
  return options;
}

PointLines rpc_lines(const RpcOptions& options) {
  PointLines lines =
      slots_of("rpc", [&](const Output& output) { return run_benchmark(options, output); });
  EXPECT_EQ(lines.exit_code, 0);
  EXPECT_EQ(lines.runs.size(), lines.medians.size() * options.repeats);
  return lines;
}

TEST(RunRpcConcurrency, NoopsByThreadsAndCores) {
  RpcOptions options = tiny_rpc("noop");
  options.node_cores = {1, 2};
  options.ops = 100;  // threads take turns on few cores
  const PointLines lines = rpc_lines(options);
  ASSERT_EQ(lines.medians.size(), 4u);
  std::set<std::pair<int, int>> seen;
  for (const Json& line : lines.medians) {
    const int client_threads = line.at("client_threads");
    const int node_cores = line.at("node_cores");
    seen.emplace(client_threads, node_cores);
    EXPECT_EQ(line.at("threads"), client_threads + node_cores);
  }
  EXPECT_EQ(seen, (std::set<std::pair<int, int>>{{1, 1}, {2, 1}, {1, 2}, {2, 2}}));
  for (const Json& line : lines.runs) {
    EXPECT_EQ(line.at("ops"), 500);
    EXPECT_FALSE(line.contains("ns_p50")) << "many are in flight, and no clock runs";
  }
  // As many answers as requests, for each target.
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
}

TEST(RunRpcConcurrency, NoopsOverEveryTransport) {
  RpcOptions options = tiny_rpc("noop");
  options.transports = all_node_transports();
  options.threads = {2};
  options.node_cores = {1, 2};
  options.repeats = 1;
  options.ops = 20;
  const PointLines lines = rpc_lines(options);
  ASSERT_EQ(lines.medians.size(), 2 * options.transports.size());
  for (std::size_t i = 0; i < lines.medians.size(); ++i) {
    const NodeTransport transport = options.transports[i % options.transports.size()];
    EXPECT_EQ(lines.medians[i].at("transport"), name(transport));
  }
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
}

TEST(RunRpcConcurrency, BatchesOverEveryTransport) {
  RpcOptions options = tiny_rpc("batch");
  options.transports = all_node_transports();
  options.batches = {1, 3, 64};
  options.batch_keys = 200;
  options.repeats = 1;
  options.ops = 640;
  const PointLines lines = rpc_lines(options);
  ASSERT_EQ(lines.medians.size(), 2 * 3 * options.transports.size());
  std::set<std::tuple<std::string, std::string, int>> seen;
  for (const Json& line : lines.runs) {
    seen.emplace(line.at("workload"), line.at("transport"), line.at("batch"));
    EXPECT_EQ(line.at("ops"), 10 * line.at("batch").get<int>()) << "ten batches of each size";
    EXPECT_LE(line.at("ns_p50"), line.at("ns_p999"));
    EXPECT_EQ(line.contains("keys"), line.at("workload") == "get");
  }
  EXPECT_EQ(seen.size(), lines.runs.size());
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
}

TEST(RunRpcConcurrency, TheMapIsMeasuredOnceHereAndOverEachTransport) {
  RpcOptions options = tiny_rpc("map");
  options.transports = {NodeTransport::shm_send, NodeTransport::roce_udp};
  options.keys = {300};
  options.threads = {1};
  options.repeats = 1;
  options.ops = 200;
  const PointLines lines = rpc_lines(options);
  ASSERT_EQ(lines.medians.size(), 6u);  // shares of writes x (transports and here)
  for (std::size_t i = 0; i < lines.medians.size(); i += 3) {
    EXPECT_EQ(lines.medians[i].at("transport"), "shm-send");
    EXPECT_EQ(lines.medians[i + 1].at("transport"), "roce-udp");
    EXPECT_EQ(lines.medians[i + 2].at("target"), "embedded");
    EXPECT_FALSE(lines.medians[i + 2].contains("transport"));
  }
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
}

// The cost to the session depends on the machine; that the same session is served meanwhile does
// not: with so few requests a node on a tenth of a core loses none.
TEST(RunRpcConcurrency, ASessionIsServedBesideAFloodOfRequestsForConnections) {
  RpcOptions options = tiny_rpc("flood");
  options.floods = {0, 500};
  options.repeats = 1;
  options.ops = 2000;
  const PointLines lines = rpc_lines(options);
  ASSERT_EQ(lines.runs.size(), 3u);
  EXPECT_EQ(lines.runs[0].at("requests_sent"), 0);
  EXPECT_GT(lines.runs[1].at("requests_sent"), 0);
  EXPECT_EQ(lines.runs[1].at("flood_to"), "node");
  EXPECT_GT(lines.runs[2].at("requests_sent"), 0);
  EXPECT_EQ(lines.runs[2].at("flood_to"), "nobody");
  for (const Json& line : lines.runs) {
    EXPECT_EQ(line.at("ops"), 2000);
    EXPECT_LE(line.at("ns_p50"), line.at("ns_p99"));
  }
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
}

class RunRpcPeerConcurrency : public NeedsRedis<testing::Test> {};

TEST_F(RunRpcPeerConcurrency, RedisHasAsManyInFlight) {
  RpcOptions options = tiny_rpc("peer");
  options.repeats = 1;
  const PointLines lines = rpc_lines(options);
  ASSERT_EQ(lines.medians.size(), 8u);
  std::set<std::tuple<std::string, std::string, int>> seen;
  for (const Json& line : lines.runs) {
    seen.emplace(line.at("target"), line.at("workload"), line.at("in_flight"));
    EXPECT_EQ(line.at("ops"), 1000);
    EXPECT_EQ(line.at("keys"), 500);
    EXPECT_EQ(line.at("threads"), 2) << "one that asks, one that serves";
  }
  EXPECT_EQ(seen.size(), 8u);
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
}

TEST(RunRpc, NoopsOneAtATimeHaveLatencies) {
  RpcOptions options = tiny_rpc("noop");
  options.in_flight = 1;
  options.threads = {1};
  const PointLines lines = rpc_lines(options);
  ASSERT_EQ(lines.runs.size(), 2u);
  EXPECT_EQ(lines.runs[0].at("ops"), 1000);
  EXPECT_LE(lines.runs[0].at("ns_p50"), lines.runs[0].at("ns_p999"));
}

TEST(RunRpcConcurrency, TheMapAnswersAlikeOnANodeAndHere) {
  const PointLines lines = rpc_lines(tiny_rpc("map"));
  // keys x threads x shares of writes x targets
  ASSERT_EQ(lines.medians.size(), 16u);
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
  for (std::size_t i = 0; i < lines.medians.size(); i += 2) {
    const Json& node = lines.medians[i];
    const Json& here = lines.medians[i + 1];
    EXPECT_EQ(node.at("target"), "node");
    EXPECT_EQ(here.at("target"), "embedded");
    for (const char* key : {"keys", "write_share", "client_threads", "in_flight", "workload"}) {
      EXPECT_EQ(node.at(key), here.at(key)) << key;
    }
    EXPECT_EQ(node.at("threads"), here.at("threads").get<int>() + 1);
    EXPECT_EQ(node.at("workload"), node.at("write_share") == 0 ? "read" : "mixed");
  }
  for (const Json& line : lines.runs) {
    EXPECT_EQ(line.at("ops"), 1000);
    EXPECT_GT(line.at("load_ops_per_s"), 0);
    EXPECT_EQ(line.at("complete"), true);
  }
  const auto hash_of = [](const Json& line) { return line.at("result_hash").get<std::string>(); };
  EXPECT_EQ(hash_of(lines.runs[0]), hash_of(lines.runs[1]));
  EXPECT_NE(hash_of(lines.runs[0]), hash_of(lines.runs[2])) << "reads are not half writes";
}

TEST(RunRpc, AsManyKeysAsFit) {
  RpcOptions options = tiny_rpc("map");
  options.ops = 10;
  const std::uint64_t few = keys_that_fit(options, 1 << 20);
  const std::uint64_t many = keys_that_fit(options, 1 << 21);
  EXPECT_GT(few, 1000u);
  EXPECT_GT(many, few * 3 / 2);
  options.value_bytes = 1000;
  EXPECT_LT(keys_that_fit(options, 1 << 20), few / 10);
  EXPECT_EQ(keys_that_fit(options, 1), 4u);

  options = tiny_rpc("map");
  options.ops = 10;
  options.keys = {kKeysThatFit};
  options.fit_bytes = 1 << 20;
  options.threads = {1};
  options.write_shares = {0};
  const PointLines lines = rpc_lines(options);
  ASSERT_EQ(lines.medians.size(), 2u);
  EXPECT_EQ(lines.medians[0].at("keys"), few);
}

TEST(RunRpc, NumbersOfKeysAsPeopleWriteThem) {
  EXPECT_EQ(parse_keys("fit"), kKeysThatFit);
  EXPECT_EQ(parse_keys("1000"), 1000u);
  for (const char* text : {"", "0", "-1", "ten", "10k", "99999999999999999999"}) {
    EXPECT_EQ(parse_keys(text), std::nullopt) << text;
  }
}

TEST(RunRpc, RefusesOptionsWithASentence) {
  const auto problem = [](auto change) {
    RpcOptions options = tiny_rpc("map");
    change(options);
    return problem_of(options).value_or("");
  };
  EXPECT_EQ(problem([](RpcOptions&) {}), "");
  EXPECT_EQ(problem([](RpcOptions& o) { o.experiments = {"rdma"}; }),
            "--experiment rdma: there are noop, map, batch, flood, peer");
  EXPECT_EQ(problem([](RpcOptions& o) { o.targets = {TargetKind::absl}; }),
            "--target must be node, embedded or both");
  EXPECT_EQ(problem([](RpcOptions& o) {
              o.write_shares = {0.5, 2};
            }),
            "--write-share must be 0 to 1");
  EXPECT_NE(problem([](RpcOptions& o) {
              o.threads = {1, 0};
            }).find("--threads"),
            std::string::npos);
  EXPECT_NE(problem([](RpcOptions& o) { o.node_cores = {63}; }).find("--node-cores"),
            std::string::npos);
  EXPECT_NE(problem([](RpcOptions& o) { o.keys = {3}; }).find("--keys"), std::string::npos);
  EXPECT_EQ(problem([](RpcOptions& o) { o.transports.clear(); }), "--transport names none");
  EXPECT_EQ(problem([](RpcOptions& o) { o.batches = {1, 0}; }), "--batch must be 1 to 256");
  EXPECT_EQ(problem([](RpcOptions& o) { o.batch_keys = 3; }), "--batch-keys must be 4 or more");
  EXPECT_NE(problem([](RpcOptions& o) { o.in_flight = 300; }).find("--in-flight"),
            std::string::npos);
  EXPECT_NE(problem([](RpcOptions& o) { o.repeats = 0; }).find("--repeats"), std::string::npos);
  RpcOptions wrong = tiny_rpc("map");
  wrong.ops = 0;
  std::ostringstream out;
  EXPECT_THROW(run_benchmark(wrong, {out, out}), std::runtime_error);
}

}  // namespace
}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bench/benchmark.hpp"
#include "bench/run_fabric.hpp"
#include "bench/testing/point_lines.hpp"
#include "fabric/roce/network_namespaces.hpp"
#include "fabric/xdp/testing/xdp_fixture.hpp"

namespace espalier::bench {
namespace {

FabricOptions tiny_fabric(const std::string& experiment) {
  FabricOptions options;
  options.experiments = {experiment};
  options.bytes = {8, 1000};
  options.in_flight = {1, 4};
  options.batches = {1, 8};
  options.region_bytes = std::uint64_t{2} << 20;
  options.ops = 100;
  options.repeats = 2;
  options.json = true;
  options.probe_rounds = 0;
  return options;
}

PointLines fabric_lines(const FabricOptions& options) {
  PointLines lines =
      slots_of("fabric", [&](const Output& output) { return run_benchmark(options, output); });
  EXPECT_EQ(lines.exit_code, 0);
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
  EXPECT_EQ(lines.runs.size(), lines.medians.size() * options.repeats);
  for (const Json& line : lines.runs) EXPECT_GT(line.at("ops_per_s"), 0);
  return lines;
}

std::set<std::string> all_of(const std::vector<Json>& lines, const char* key) {
  std::set<std::string> found;
  for (const Json& line : lines) found.insert(line.at(key).get<std::string>());
  return found;
}

TEST(RunFabricConcurrency, EachVerbOverEachTransport) {
  FabricOptions options = tiny_fabric("verbs");
  options.transports = {FabricKind::shm,      FabricKind::roce_memory, FabricKind::roce_memif,
                        FabricKind::roce_udp, FabricKind::roce_udp6,   FabricKind::ofi_tcp};
  const PointLines lines = fabric_lines(options);
  EXPECT_EQ(all_of(lines.medians, "target"),
            (std::set<std::string>{"shm", "roce-memory", "roce-memif", "roce-udp", "roce-udp6",
                                   "ofi-tcp"}));
  EXPECT_EQ(all_of(lines.medians, "workload"),
            (std::set<std::string>{"read", "write", "send", "fetch_add", "compare_swap",
                                   "write_immediate"}));
  // Four verbs of two sizes, and two atomics, with two numbers in flight.
  EXPECT_EQ(lines.medians.size(), 6u * (4 * 2 + 2) * 2);
  for (const Json& line : lines.runs) {
    EXPECT_EQ(line.contains("ns_p50"), line.at("in_flight") == 1) << line;
  }
}

TEST(RunFabricConcurrency, OverACableBetweenTwoNetworkStacks) {
  FabricOptions options = tiny_fabric("verbs");
  options.transports = {FabricKind::roce_xdp, FabricKind::roce_udp_veth};
  std::unique_ptr<fabric::roce::NetworkNamespaces> tried;
  const std::string missing = fabric::xdp::open_cable(tried);
  tried.reset();
  // Not every machine permits namespaces with AF_XDP; tests/skips.txt lists this.
  if (!missing.empty()) GTEST_SKIP() << missing;
  const PointLines lines = fabric_lines(options);
  EXPECT_EQ(all_of(lines.medians, "target"), (std::set<std::string>{"roce-xdp", "roce-udp-veth"}));
  EXPECT_EQ(lines.medians.size(), 2u * (4 * 2 + 2) * 2);
}

TEST(RunFabricConcurrency, BatchesAndInlinedWritesOfWhichFewAreTold) {
  const PointLines lines = fabric_lines(tiny_fabric("batch"));
  EXPECT_EQ(lines.medians.size(), 6u);
  const std::vector<Json> writes = lines.runs_with("workload", "write");
  ASSERT_EQ(writes.size(), 4u);
  for (const Json& line : writes) {
    EXPECT_EQ(line.at("inline"), true) << line;
    EXPECT_EQ(line.at("signal_every"), 16) << line;
  }
}

TEST(RunFabricConcurrency, LostPacketsChangeNoAnswer) {
  FabricOptions options = tiny_fabric("loss");
  options.transports = {FabricKind::shm, FabricKind::roce_memory, FabricKind::roce_memif,
                        FabricKind::roce_udp};
  options.losses = {0, 0.1};
  EXPECT_EQ(fabric_lines(options).medians.size(), 6u);
}

TEST(RunFabricConcurrency, MemcpyReadsTheSame) {
  const PointLines lines = fabric_lines(tiny_fabric("local"));
  EXPECT_EQ(all_of(lines.medians, "target"), (std::set<std::string>{"shm", "memcpy"}));
}

TEST(RunFabricConcurrency, AdditionsOverTheFabricAreAsManyAsPlainOnes) {
  const PointLines lines = fabric_lines(tiny_fabric("atomics"));
  EXPECT_EQ(all_of(lines.medians, "target"), (std::set<std::string>{"shm", "instructions"}));
}

TEST(RunFabric, RefusesWhatCannotBe) {
  const auto refuses = [](auto change) {
    FabricOptions options;
    change(options);
    return problem_of(options).has_value();
  };
  EXPECT_FALSE(refuses([](FabricOptions&) {}));
  EXPECT_TRUE(refuses([](FabricOptions& o) { o.experiments = {"verb"}; }));
  EXPECT_TRUE(refuses([](FabricOptions& o) { o.transports.clear(); }));
  EXPECT_TRUE(refuses([](FabricOptions& o) { o.bytes = {0}; }));
  EXPECT_TRUE(refuses([](FabricOptions& o) { o.in_flight = {2000}; }));
  EXPECT_TRUE(refuses([](FabricOptions& o) { o.batches = {}; }));
  EXPECT_TRUE(refuses([](FabricOptions& o) { o.region_bytes = 1; }));
  EXPECT_TRUE(refuses([](FabricOptions& o) { o.losses = {0.9}; }));
  EXPECT_TRUE(refuses([](FabricOptions& o) { o.ops = 0; }));
  EXPECT_TRUE(refuses([](FabricOptions& o) { o.repeats = 0; }));
  EXPECT_FALSE(parse_fabric_kind("verbs"));
  EXPECT_EQ(parse_fabric_kind("shm"), FabricKind::shm);
}

}  // namespace
}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
#include "bench/run_one_sided.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "bench/benchmark.hpp"
#include "bench/map_session.hpp"
#include "bench/node_size.hpp"
#include "bench/own_node.hpp"
#include "client/store_impl.hpp"

namespace espalier::bench {
namespace {

constexpr const char* kOneSidedMap = "read";

struct OneSidedPoint {
  NodeTransport transport = NodeTransport::shm;
  std::uint64_t node_bytes = 0;
  std::uint64_t cache_bytes = 0;
};

struct OneSidedMeasured {
  double ops_per_s = 0;
  double round_trips_per_op = 0;
  double bytes_per_op = 0;
  base::Histogram latencies{};  // of one get at a time
};

std::unique_ptr<node::Node> start_read_node(const ReadLoad& load, NodeTransport transport) {
  node::Config config = spinning_node_config();
  config.memory.limit = (std::uint64_t{256} << 20) + load.keys * (load.value_bytes + 160);
  config.node.one_sided = true;
  prepare(config, transport);
  return start_own_node(config);
}

// A pipeline counts when it ends, and filling its cache is excluded: so the traffic of as many
// pipelines that only do that is subtracted.
OneSidedMeasured measure_alone(const node::Node& node, ReadLoad load, const OneSidedPoint& point) {
  if (point.cache_bytes != 0) load.warm_stride = stride_of_leaves(point.node_bytes);
  ReadLoad only_warm = load;
  only_warm.ops = 0;
  const Store store = value_or_throw(
      Store::connect(address_of(node, point.transport),
                     {.access = Access::one_sided, .cache_bytes = point.cache_bytes}),
      "cannot connect");
  const auto traffic = [&] { return client::StoreImpl::of(store).read_traffic(); };
  const Map map = value_or_throw(store.open_map(kOneSidedMap), "cannot open the map");
  const tree::WalkTraffic begin = traffic();
  read(map, only_warm, 0);
  const tree::WalkTraffic warm = traffic();
  OneSidedMeasured measured;
  measured.ops_per_s = read(map, load, 1);
  const tree::WalkTraffic end = traffic();
  const auto per_op = [&](std::uint64_t tree::WalkTraffic::*count) {
    const double all = static_cast<double>(end.*count) - static_cast<double>(warm.*count);
    const double warming = static_cast<double>(warm.*count) - static_cast<double>(begin.*count);
    return std::max(0.0, all - warming) / static_cast<double>(load.ops * load.threads);
  };
  measured.round_trips_per_op = per_op(&tree::WalkTraffic::round_trips);
  measured.bytes_per_op = per_op(&tree::WalkTraffic::bytes);
  measured.latencies = latencies_of_gets(map, load, 2);
  return measured;
}

bool is_read_over(NodeTransport transport) {
  return transport == NodeTransport::shm || transport == NodeTransport::roce_udp ||
         transport == NodeTransport::roce_udp6 || transport == NodeTransport::roce_memif;
}

Json one_sided_line(const OneSidedBenchOptions& options, const OneSidedPoint& point,
                    const OneSidedMeasured& measured) {
  return {{"transport", name(point.transport)},
          {"node_bytes", point.node_bytes},
          {"cache_bytes", point.cache_bytes},
          {"keys", options.load.keys},
          {"scan_percent", options.load.scan_percent},
          {"threads", options.load.threads},
          {"in_flight", options.load.in_flight},
          {"ops_per_s", measured.ops_per_s},
          {"round_trips_per_op", measured.round_trips_per_op},
          {"bytes_per_op", measured.bytes_per_op},
          {"get_ns_p50", measured.latencies.percentile(0.5)},
          {"get_ns_p99", measured.latencies.percentile(0.99)}};
}

void run_one_sided(const OneSidedBenchOptions& options, Report& report) {
  report.table({{"transport", -12, "transport"},
                {"node bytes", 10, "node_bytes"},
                {"cache", 10, "cache_bytes"},
                {"k ops/s", 10, "ops_per_s", 1, 1e-3},
                {"trips/op", 9, "round_trips_per_op", 2},
                {"bytes/op", 9, "bytes_per_op", 0},
                {"p50 ns", 8, "get_ns_p50"},
                {"p99 ns", 8, "get_ns_p99"}});
  for (const NodeTransport transport : options.transports) {
    for (const std::uint64_t node_bytes : options.node_bytes) {
      report.progress().show(fmt::format("nodes of {} bytes over {}", node_bytes, name(transport)));
      const auto node = start_read_node(options.load, transport);
      Store store = value_or_throw(Store::connect(local_address(*node)), "cannot connect");
      const Map map = value_or_throw(
          store.create_map(kOneSidedMap, {.node_bytes = static_cast<std::uint32_t>(node_bytes)}),
          "cannot make the map");
      fill(map, options.load);
      for (const std::uint64_t cache_bytes : options.cache_bytes) {
        const OneSidedPoint point{transport, node_bytes, cache_bytes};
        report.line(one_sided_line(options, point, measure_alone(*node, options.load, point)));
      }
    }
  }
}

}  // namespace

void OneSidedBenchOptions::declare(OptionRows& rows) {
  rows.choices("--transports", transports, parse_node_transport,
               "shm, roce-udp, roce-udp6, roce-memif; shm,roce-udp by default");
  rows.numbers("--node-bytes", node_bytes, {}, "sizes of nodes");
  rows.numbers("--cache", cache_bytes, {}, "bytes that the client remembers");
  load.declare(rows);
  rows.json(*this);
  rows.require(std::ranges::all_of(node_bytes, is_node_size),
               "--node-bytes must be powers of two from 512 to 65536");
  rows.require(std::ranges::all_of(transports, is_read_over),
               "--transports must be shm, roce-udp, roce-udp6 or roce-memif");
}

std::vector<ExperimentRow> OneSidedBenchOptions::experiment_rows() const {
  return {{"one-sided", {}, [this](Report& report) { run_one_sided(*this, report); }}};
}

}  // namespace espalier::bench

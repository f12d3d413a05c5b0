// SPDX-License-Identifier: Apache-2.0
#include "bench/run_one_sided.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "bench/map_session.hpp"
#include "bench/node_size.hpp"
#include "bench/own_node.hpp"
#include "bench/progress.hpp"
#include "bench/report.hpp"
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

// A pipeline counts when it ends, and what it takes to remember is not meant: so as many that do
// nothing else are taken off.
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
  const auto per_op = [&](std::uint64_t tree::WalkTraffic::* count) {
    const double all = static_cast<double>(end.*count) - static_cast<double>(warm.*count);
    const double warming = static_cast<double>(warm.*count) - static_cast<double>(begin.*count);
    return std::max(0.0, all - warming) / static_cast<double>(load.ops * load.threads);
  };
  measured.round_trips_per_op = per_op(&tree::WalkTraffic::round_trips);
  measured.bytes_per_op = per_op(&tree::WalkTraffic::bytes);
  measured.latencies = latencies_of_gets(map, load, 2);
  return measured;
}

class OneSidedReport {
 public:
  OneSidedReport(const OneSidedBenchOptions& options, const Output& output)
      : options_(options),
        out_(output.out),
        table_(output.out, {{"transport", -12},
                            {"node bytes", 10},
                            {"cache", 10},
                            {"k ops/s", 10},
                            {"trips/op", 9},
                            {"bytes/op", 9},
                            {"p50 ns", 8},
                            {"p99 ns", 8}}) {}
  void add(const OneSidedPoint& point, const OneSidedMeasured& measured) {
    ++count_;
    if (!options_.json) {
      table_.row({std::string(name(point.transport)), std::to_string(point.node_bytes),
                  std::to_string(point.cache_bytes),
                  fmt::format("{:.1f}", measured.ops_per_s / 1e3),
                  fmt::format("{:.2f}", measured.round_trips_per_op),
                  fmt::format("{:.0f}", measured.bytes_per_op),
                  std::to_string(measured.latencies.percentile(0.5)),
                  std::to_string(measured.latencies.percentile(0.99))});
      return;
    }
    Json line;
    line["bench"] = "one-sided";
    line["transport"] = name(point.transport);
    line["node_bytes"] = point.node_bytes;
    line["cache_bytes"] = point.cache_bytes;
    line["keys"] = options_.load.keys;
    line["scan_percent"] = options_.load.scan_percent;
    line["threads"] = options_.load.threads;
    line["in_flight"] = options_.load.in_flight;
    line["ops_per_s"] = measured.ops_per_s;
    line["round_trips_per_op"] = measured.round_trips_per_op;
    line["bytes_per_op"] = measured.bytes_per_op;
    line["get_ns_p50"] = measured.latencies.percentile(0.5);
    line["get_ns_p99"] = measured.latencies.percentile(0.99);
    print_line(out_, line);
  }
  void end() { print_measurements(out_, "one-sided", count_, options_.json); }

 private:
  const OneSidedBenchOptions& options_;
  std::ostream& out_;
  Table table_;
  std::uint64_t count_ = 0;
};

}  // namespace

std::optional<std::string> problem_of(const OneSidedBenchOptions& options) {
  if (const auto problem = problem_of(options.load)) return problem;
  if (!std::ranges::all_of(options.node_bytes, is_node_size)) {
    return "--node-bytes must be powers of two from 512 to 65536";
  }
  const auto reads = [](NodeTransport transport) {
    return transport == NodeTransport::shm || transport == NodeTransport::roce_udp ||
           transport == NodeTransport::roce_udp6 || transport == NodeTransport::roce_memif;
  };
  if (!std::ranges::all_of(options.transports, reads)) {
    return "--transports must be shm, roce-udp, roce-udp6 or roce-memif";
  }
  return std::nullopt;
}

int run_one_sided(const OneSidedBenchOptions& options, const Output& output) {
  if (const auto problem = problem_of(options)) throw std::runtime_error(*problem);
  const auto or_default = [](const auto& given, auto fallback) {
    return given.empty() ? fallback : given;
  };
  const auto transports =
      or_default(options.transports, std::vector{NodeTransport::shm, NodeTransport::roce_udp});
  const auto sizes =
      or_default(options.node_bytes, std::vector<std::uint64_t>{512, 1024, 2048, 4096, 8192});
  const auto caches =
      or_default(options.cache_bytes, std::vector<std::uint64_t>{0, std::uint64_t{32} << 20});
  Progress progress(output);
  OneSidedReport report(options, output);
  for (const NodeTransport transport : transports) {
    for (const std::uint64_t node_bytes : sizes) {
      progress.show(fmt::format("nodes of {} bytes over {}", node_bytes, name(transport)));
      const auto node = start_read_node(options.load, transport);
      Store store = value_or_throw(Store::connect(local_address(*node)), "cannot connect");
      const Map map = value_or_throw(
          store.create_map(kOneSidedMap, {.node_bytes = static_cast<std::uint32_t>(node_bytes)}),
          "cannot make the map");
      fill(map, options.load);
      for (const std::uint64_t cache_bytes : caches) {
        const OneSidedPoint point{transport, node_bytes, cache_bytes};
        const OneSidedMeasured measured = measure_alone(*node, options.load, point);
        progress.clear();
        report.add(point, measured);
      }
    }
  }
  report.end();
  return 0;
}

}  // namespace espalier::bench

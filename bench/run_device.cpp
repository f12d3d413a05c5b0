// SPDX-License-Identifier: Apache-2.0
#include "bench/run_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "bench/benchmark.hpp"
#include "bench/device_workloads.hpp"
#include "bench/map_session.hpp"
#include "bench/named_values.hpp"
#include "bench/node_size.hpp"
#include "bench/own_device.hpp"
#include "bench/own_node.hpp"
#include "bench/turn_costs.hpp"

namespace espalier::bench {
namespace {

constexpr const char* kDeviceMap = "read";
constexpr std::array<std::pair<std::string_view, TargetKind>, 3> kPlaces{{
    {"host", TargetKind::node},
    {"one-sided", TargetKind::one_sided},
    {"device", TargetKind::device},
}};

/// Processor time of each side, per request.
struct DeviceCosts {
  double client_ns = 0;
  double host_ns = 0;
  double device_ns = 0;
};

struct DeviceMeasured {
  double ops_per_s = 0;
  PathTraffic traffic;  // of these requests
  DeviceCosts costs{};  // of others, in turns
};

double device_model(const DeviceBenchOptions& options, const DeviceCosts& costs) {
  const Side sides[] = {
      {.cpu_ns_per_op = costs.client_ns, .cores = static_cast<double>(options.load.threads)},
      {.cpu_ns_per_op = costs.host_ns},
      {.cpu_ns_per_op = costs.device_ns, .slowness = options.slowness}};
  return model_ops_per_s(sides);
}

/// Requests a second that the paths to interior nodes and leaves would carry, if nothing else took
/// time: the device's own memory, and its host's. 0: neither was used.
double memory_model_of(const DeviceBenchOptions& options, double own_bytes, double host_bytes) {
  const double seconds =
      1e-9 * std::max(own_bytes / options.own_gbps, host_bytes / options.host_gbps);
  return seconds == 0 ? 0 : 1 / seconds;
}

std::unique_ptr<node::Node> start_host(const ReadLoad& load) {
  node::Config config = spinning_node_config();
  config.memory.limit = (std::uint64_t{256} << 20) + load.keys * (load.value_bytes + 160);
  prepare_host(config);
  return start_own_node(config);
}

/// Sends requests to this address; the first round fills caches, and the last one measures costs.
/// `between` gets the store. `device`: null for the host itself.
DeviceMeasured ask_rounds(const std::string& address, const ReadLoad& load, const node::Node& host,
                          const node::Node* device, const auto& between) {
  const Store store = value_or_throw(Store::connect(address), "cannot connect");
  const Map map = value_or_throw(store.open_map(kDeviceMap), "cannot open the map");
  DeviceMeasured measured;
  read(map, load, 0);
  between(store);
  measured.ops_per_s = read(map, load, 1);
  between(store);
  ClientTurns turns(false);
  const WorkerMeter at_host(host);
  std::optional<WorkerMeter> at_device;
  if (device != nullptr) at_device.emplace(*device);
  const auto ops = static_cast<double>(read_by_turns(map, load, 2, turns));
  measured.costs = {.client_ns = turns.cpu_ns() / ops,
                    .host_ns = at_host.cpu_ns() / ops,
                    .device_ns = at_device ? at_device->cpu_ns() / ops : 0};
  return measured;
}

DeviceMeasured measure_device(device::Device& device, const node::Node& host,
                              const ReadLoad& load) {
  PathTraffic now;
  PathTraffic of_round;
  const std::string address = address_of(device, NodeTransport::unix_socket);
  // Valid here, since its host stays.
  const node::Node* const node = device.with_node([](const node::Node* is) { return is; });
  DeviceMeasured measured = ask_rounds(address, load, host, node, [&](const Store& store) {
    const PathTraffic before = std::exchange(now, traffic_of(device, host, store, kDeviceMap));
    of_round = now - before;
  });
  measured.traffic = of_round;
  return measured;
}

std::vector<Column> cache_columns() {
  return {{"place", -8, "place"},
          {"cache", 10, "cache_bytes"},
          {"roots", 6, "pins_roots"},
          {"balance", 8, "balance"},
          {"k ops/s", 10, "ops_per_s", 1, 1e-3},
          {"host B/op", 10, "host_bytes_per_op", 0},
          {"own B/op", 10, "own_bytes_per_op", 0},
          {"hits", 8, "hit_share", 1, 100, " %"},
          {"balanced/op", 11, "balanced_per_op", 2},
          {"forwarded/op", 12, "forwarded_per_op", 2},
          {"client ns", 10, "client_cpu_ns_per_op", 0},
          {"host ns", 8, "host_cpu_ns_per_op", 0},
          {"device ns", 10, "device_cpu_ns_per_op", 0},
          {"model k/s", 10, "model_ops_per_s", 1, 1e-3},
          {"memory k/s", 10, "model_memory_ops_per_s", 1, 1e-3}};
}

Json cache_line(const DeviceBenchOptions& options, const char* place, std::uint32_t repeat,
                const OwnDeviceOptions& device_options, const DeviceMeasured& measured) {
  const auto ops = static_cast<double>(options.load.ops * options.load.threads);
  const PathTraffic& traffic = measured.traffic;
  const PathTraffic::OfDevice& device = traffic.of_device;
  const auto per_op = [&](std::uint64_t count) { return static_cast<double>(count) / ops; };
  return {{"experiment", "cache"},
          {"place", place},
          {"cache_bytes", device_options.cache_bytes},
          {"pins_roots", device_options.pins_roots},
          {"balance", device_options.balance},
          {"slowness", options.slowness},
          {"node_bytes", options.node_bytes},
          {"keys", options.load.keys},
          {"scan_percent", options.load.scan_percent},
          {"threads", options.load.threads},
          {"in_flight", options.load.in_flight},
          {"repeat", repeat},
          {"ops_per_s", measured.ops_per_s},
          {"host_bytes_per_op", per_op(traffic.bytes)},
          {"own_bytes_per_op", per_op(device.own_bytes)},
          {"round_trips_per_op", per_op(traffic.round_trips)},
          {"hit_share", traffic.hit_share()},
          {"balanced_per_op", per_op(device.balanced)},
          {"forwarded_per_op", per_op(device.forwarded)},
          {"client_cpu_ns_per_op", measured.costs.client_ns},
          {"host_cpu_ns_per_op", measured.costs.host_ns},
          {"device_cpu_ns_per_op", measured.costs.device_ns},
          {"model_ops_per_s", device_model(options, measured.costs)},
          {"own_gbps", options.own_gbps},
          {"host_gbps", options.host_gbps},
          {"model_memory_ops_per_s",
           memory_model_of(options, per_op(device.own_bytes), per_op(traffic.bytes))}};
}

std::vector<OwnDeviceOptions> devices_of(const DeviceBenchOptions& options) {
  const std::vector<std::uint64_t> caches =
      options.cache_bytes.empty()
          ? std::vector<std::uint64_t>{0, std::uint64_t{1} << 20, std::uint64_t{64} << 20}
          : options.cache_bytes;
  const std::vector<std::uint64_t> balances =
      options.balances.empty() ? std::vector<std::uint64_t>{0, 1} : options.balances;
  std::vector<OwnDeviceOptions> devices;
  const OwnDeviceOptions base{.slowness = options.slowness, .spins = true};
  if (options.bare) {
    devices.push_back(base);
    devices.back().cache_bytes = 0;
    devices.back().pins_roots = false;
  }
  for (const std::uint64_t cache_bytes : caches) {
    for (const std::uint64_t balance : balances) {
      devices.push_back(base);
      devices.back().cache_bytes = cache_bytes;
      devices.back().balance = static_cast<std::uint32_t>(balance);
    }
  }
  return devices;
}

void run_cache(const DeviceBenchOptions& options, Report& report) {
  report.table(cache_columns());
  report.progress().show("the host alone");
  const auto host = start_host(options.load);
  Store store = value_or_throw(Store::connect(local_address(*host)), "cannot connect");
  const Map map = value_or_throw(
      store.create_map(kDeviceMap, {.node_bytes = static_cast<std::uint32_t>(options.node_bytes)}),
      "cannot make the map");
  fill(map, options.load);
  for (std::uint32_t repeat = 0; repeat < options.repeats; ++repeat) {
    const DeviceMeasured alone =
        ask_rounds(local_address(*host), options.load, *host, nullptr, [](const Store&) {});
    report.line(cache_line(options, "host", repeat, {.cache_bytes = 0}, alone));
    for (const OwnDeviceOptions& each : devices_of(options)) {
      report.progress().show(fmt::format("a device that remembers {} bytes", each.cache_bytes));
      const auto device = start_own_device(*host, each);
      const DeviceMeasured measured = measure_device(*device, *host, options.load);
      report.line(cache_line(options, "device", repeat, each, measured));
    }
  }
}

}  // namespace

std::string_view place_name(TargetKind kind) { return name_in(kPlaces, kind); }

std::optional<TargetKind> parse_device_place(std::string_view text) {
  return value_in(kPlaces, text);
}

void DeviceBenchOptions::declare(OptionRows& rows) {
  rows.any_numbers("--cache", cache_bytes, {},
                   "bytes that the device remembers besides the root; 0,1048576,67108864 by "
                   "default (cache), 67108864 (ycsb), from 0 to what knows each leaf (miss)");
  rows.any_numbers("--balance", balances, {0, 1000},
                   "weights of its balancer, 0 being none; 0,1 by default (cache), 0 (ycsb, miss)");
  rows.flag("--bare", bare, "first a device that remembers nothing, the root included (cache)");
  rows.number("--own-gbps", own_gbps, {1e-9},
              "what the device's own memory gives, for the model of both ways (cache)");
  rows.number("--host-gbps", host_gbps, {1e-9},
              "what the way to its host's memory gives, likewise");
  rows.number("--slow", slowness, {1, 1000},
              "how many times as slow the device's worker is as this machine: it spins after each "
              "turn");
  rows.choices("--places", places, parse_device_place,
               "host, one-sided, device (ycsb); all by default");
  rows.choices("--workload", workloads, parse_workload,
               "a b c d e f, cloud, get, scan, mixed (ycsb); a,b,c,d,e,f,cloud by default");
  rows.choices("--distribution", distributions, parse_distribution,
               "zipfian, uniform, latest (ycsb); zipfian,uniform by default, of d latest,uniform");
  rows.numbers("--scan-share", scan_shares, {0, 1}, "shares of scans (ycsb, workload cloud)");
  rows.number("--repeats", repeats, {1, 1000}, "rounds, in which all ways take turns");
  rows.number("--node-bytes", node_bytes, {}, "size of nodes");
  rows.require(is_node_size(node_bytes), kNoNodeSize);
  load.declare(rows);
  rows.json(*this);
  const auto is_named = [&](const char* name) {
    return std::ranges::count(experiments, name) != 0;
  };
  rows.require(!is_named("ycsb") || cache_bytes.size() <= 1, "--experiment ycsb takes one --cache");
  rows.require((!is_named("ycsb") && !is_named("miss")) || balances.size() <= 1,
               "--experiment ycsb and miss take one --balance");
  rows.require(std::ranges::none_of(workloads, covers_keys),
               "--workload must be of those that ask a map that is there: a to f, cloud, get, "
               "scan, mixed");
}

std::vector<ExperimentRow> DeviceBenchOptions::experiment_rows() const {
  const auto of = [this](void (*run)(const DeviceBenchOptions&, Report&)) {
    return [this, run](Report& report) { run(*this, report); };
  };
  return {{"cache", {}, of(run_cache)},
          {"ycsb", {}, of(run_device_ycsb), true},
          {"miss", {}, of(run_device_miss), true}};
}

}  // namespace espalier::bench

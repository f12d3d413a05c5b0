// SPDX-License-Identifier: Apache-2.0
#include "bench/run_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <stdexcept>

#include "bench/map_session.hpp"
#include "bench/node_transport.hpp"
#include "bench/own_node.hpp"
#include "bench/progress.hpp"
#include "bench/report.hpp"
#include "device/device.hpp"
#include "node/metrics.hpp"

namespace espalier::bench {
namespace {

constexpr const char* kDeviceMap = "read";

struct DeviceMeasured {
  double ops_per_s = 0;
  node::DeviceNumbers device;  // of these requests
};

node::DeviceNumbers moved_since(const node::DeviceNumbers& before, const node::DeviceNumbers& now) {
  node::DeviceNumbers moved;
  moved.round_trips = now.round_trips - before.round_trips;
  moved.bytes = now.bytes - before.bytes;
  moved.descents = now.descents - before.descents;
  moved.hits = now.hits - before.hits;
  moved.remembered_bytes = now.remembered_bytes - before.remembered_bytes;
  moved.balanced = now.balanced - before.balanced;
  moved.forwarded = now.forwarded - before.forwarded;
  return moved;
}

std::unique_ptr<node::Node> start_host(const ReadLoad& load) {
  node::Config config = spinning_node_config();
  config.memory.limit = (std::uint64_t{256} << 20) + load.keys * (load.value_bytes + 160);
  config.node.one_sided = true;
  prepare(config, NodeTransport::shm);
  return start_own_node(config);
}

std::unique_ptr<device::Device> start_device(const node::Node& host, std::uint64_t cache_bytes,
                                             std::uint64_t balance) {
  node::Config config = spinning_node_config();
  config.node.place = node::Place::device;
  config.node.host = address_of(host, NodeTransport::shm);
  config.node.cache = cache_bytes;
  config.node.balance = static_cast<std::uint32_t>(balance);
  device::DeviceOptions options;
  options.host = value_or_throw(device::host_options(config), "no such host");
  return value_or_throw(device::Device::start(config, options), "cannot start a device");
}

/// Asks at this address; the first round is for what is remembered.
double ask_rounds(const std::string& address, const ReadLoad& load, const auto& between) {
  Store store = value_or_throw(Store::connect(address), "cannot connect");
  const Map map = value_or_throw(store.open_map(kDeviceMap), "cannot open the map");
  read(map, load, 0);
  between();
  return read(map, load, 1);
}

DeviceMeasured measure_device(device::Device& device, const ReadLoad& load) {
  const auto numbers = [&] {
    return device.with_node([](const node::Node* node) { return node::numbers_of(*node).device; });
  };
  const std::string address =
      device.with_node([](const node::Node* node) { return local_address(*node); });
  DeviceMeasured measured;
  node::DeviceNumbers before;
  measured.ops_per_s = ask_rounds(address, load, [&] { before = numbers(); });
  measured.device = moved_since(before, numbers());
  return measured;
}

class DeviceReport {
 public:
  DeviceReport(const DeviceBenchOptions& options, const Output& output)
      : options_(options),
        out_(output.out),
        table_(output.out, {{"place", -8},
                            {"cache", 10},
                            {"balance", 8},
                            {"k ops/s", 10},
                            {"host B/op", 10},
                            {"own B/op", 10},
                            {"hits", 8},
                            {"balanced", 10},
                            {"forwarded", 10}}) {}

  void add_host(double ops_per_s) { add("host", 0, 0, {ops_per_s, {}}); }
  void add(const char* place, std::uint64_t cache_bytes, std::uint64_t balance,
           const DeviceMeasured& measured) {
    ++count_;
    const auto ops = static_cast<double>(options_.load.ops * options_.load.threads);
    const node::DeviceNumbers& device = measured.device;
    const auto per_op = [&](std::uint64_t count) { return static_cast<double>(count) / ops; };
    const double hits = device.descents == 0 ? 0
                                             : static_cast<double>(device.hits) /
                                                   static_cast<double>(device.descents);
    if (!options_.json) {
      table_.row({place, std::to_string(cache_bytes), std::to_string(balance),
                  fmt::format("{:.1f}", measured.ops_per_s / 1e3),
                  fmt::format("{:.0f}", per_op(device.bytes)),
                  fmt::format("{:.0f}", per_op(device.remembered_bytes)),
                  fmt::format("{:.1f} %", 100 * hits), std::to_string(device.balanced),
                  std::to_string(device.forwarded)});
      return;
    }
    Json line;
    line["bench"] = "device";
    line["place"] = place;
    line["cache_bytes"] = cache_bytes;
    line["balance"] = balance;
    line["node_bytes"] = options_.node_bytes;
    line["keys"] = options_.load.keys;
    line["scan_percent"] = options_.load.scan_percent;
    line["threads"] = options_.load.threads;
    line["in_flight"] = options_.load.in_flight;
    line["ops_per_s"] = measured.ops_per_s;
    line["host_bytes_per_op"] = per_op(device.bytes);
    line["own_bytes_per_op"] = per_op(device.remembered_bytes);
    line["round_trips_per_op"] = per_op(device.round_trips);
    line["hit_share"] = hits;
    line["balanced_per_op"] = per_op(device.balanced);
    line["forwarded_per_op"] = per_op(device.forwarded);
    print_line(out_, line);
  }
  void end() { print_measurements(out_, "device", count_, options_.json); }

 private:
  const DeviceBenchOptions& options_;
  std::ostream& out_;
  Table table_;
  std::uint64_t count_ = 0;
};

}  // namespace

std::optional<std::string> problem_of(const DeviceBenchOptions& options) {
  if (const auto problem = problem_of(options.load)) return problem;
  if (!std::has_single_bit(options.node_bytes) || options.node_bytes < 512 ||
      options.node_bytes > 65'536) {
    return "--node-bytes must be a power of two from 512 to 65536";
  }
  const auto weighs = [](std::uint64_t balance) { return balance <= 1000; };
  if (!std::ranges::all_of(options.balances, weighs)) return "--balance must be 0 to 1000";
  return std::nullopt;
}

int run_device(const DeviceBenchOptions& options, const Output& output) {
  if (const auto problem = problem_of(options)) throw std::runtime_error(*problem);
  const std::vector<std::uint64_t> caches =
      options.cache_bytes.empty()
          ? std::vector<std::uint64_t>{0, std::uint64_t{1} << 20, std::uint64_t{64} << 20}
          : options.cache_bytes;
  const std::vector<std::uint64_t> balances =
      options.balances.empty() ? std::vector<std::uint64_t>{0, 1} : options.balances;
  Progress progress(output);
  DeviceReport report(options, output);
  progress.show("the host alone");
  const auto host = start_host(options.load);
  Store store = value_or_throw(Store::connect(local_address(*host)), "cannot connect");
  const Map map = value_or_throw(
      store.create_map(kDeviceMap, {.node_bytes = static_cast<std::uint32_t>(options.node_bytes)}),
      "cannot make the map");
  fill(map, options.load);
  const double alone = ask_rounds(local_address(*host), options.load, [] {});
  progress.clear();
  report.add_host(alone);
  for (const std::uint64_t cache_bytes : caches) {
    for (const std::uint64_t balance : balances) {
      progress.show(fmt::format("a device that remembers {} bytes", cache_bytes));
      const auto device = start_device(*host, cache_bytes, balance);
      const DeviceMeasured measured = measure_device(*device, options.load);
      progress.clear();
      report.add("device", cache_bytes, balance, measured);
    }
  }
  report.end();
  return 0;
}

}  // namespace espalier::bench

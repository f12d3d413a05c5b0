// SPDX-License-Identifier: Apache-2.0
#include "bench/run_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "bench/device_workloads.hpp"
#include "bench/map_session.hpp"
#include "bench/named_values.hpp"
#include "bench/node_size.hpp"
#include "bench/own_device.hpp"
#include "bench/own_node.hpp"
#include "bench/point_run.hpp"
#include "bench/progress.hpp"
#include "bench/report.hpp"
#include "bench/turn_costs.hpp"

namespace espalier::bench {
namespace {

constexpr const char* kDeviceMap = "read";
constexpr std::array<std::string_view, 3> kDeviceExperiments{"cache", "ycsb", "miss"};
constexpr std::array<std::pair<std::string_view, TargetKind>, 3> kPlaces{{
    {"host", TargetKind::node},
    {"one-sided", TargetKind::one_sided},
    {"device", TargetKind::device},
}};

/// Processor time of each side, for a request.
struct DeviceCosts {
  double client_ns = 0;
  double host_ns = 0;
  double device_ns = 0;
};

struct DeviceMeasured {
  double ops_per_s = 0;
  PathTraffic traffic;  // of these requests
  DeviceCosts costs{};  // of others, by turns
};

double device_model(const DeviceBenchOptions& options, const DeviceCosts& costs) {
  const Side sides[] = {
      {.cpu_ns_per_op = costs.client_ns, .cores = static_cast<double>(options.load.threads)},
      {.cpu_ns_per_op = costs.host_ns},
      {.cpu_ns_per_op = costs.device_ns, .slowness = options.slowness}};
  return model_ops_per_s(sides);
}

/// Requests a second that both ways to interior nodes and leaves would carry, if nothing else took
/// time: the device's own memory, and that of its host. 0: neither was asked.
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

/// Asks at this address; the first round is for what is remembered, and the last one for what
/// requests cost. `between` is given the store. `device`: null if the host is asked itself.
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
  // It stays, for its host does.
  const node::Node* const node = device.with_node([](const node::Node* is) { return is; });
  DeviceMeasured measured = ask_rounds(address, load, host, node, [&](const Store& store) {
    const PathTraffic before = std::exchange(now, traffic_of(device, host, store, kDeviceMap));
    of_round = now - before;
  });
  measured.traffic = of_round;
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
                            {"forwarded", 10},
                            {"client ns", 10},
                            {"host ns", 8},
                            {"device ns", 10},
                            {"model k/s", 10},
                            {"memory k/s", 10}}) {}

  void add(const char* place, std::uint32_t repeat, const OwnDeviceOptions& device_options,
           const DeviceMeasured& measured) {
    ++count_;
    const std::uint64_t cache_bytes = device_options.cache_bytes;
    const std::uint64_t balance = device_options.balance;
    const auto ops = static_cast<double>(options_.load.ops * options_.load.threads);
    const PathTraffic& traffic = measured.traffic;
    const PathTraffic::OfDevice& device = traffic.of_device;
    const auto per_op = [&](std::uint64_t count) { return static_cast<double>(count) / ops; };
    const double of_memory =
        memory_model_of(options_, per_op(device.own_bytes), per_op(traffic.bytes));
    if (!options_.json) {
      table_.row({place, device_options.pins_roots ? std::to_string(cache_bytes) : "none",
                  std::to_string(balance), fmt::format("{:.1f}", measured.ops_per_s / 1e3),
                  fmt::format("{:.0f}", per_op(traffic.bytes)),
                  fmt::format("{:.0f}", per_op(device.own_bytes)),
                  fmt::format("{:.1f} %", 100 * traffic.hit_share()),
                  std::to_string(device.balanced), std::to_string(device.forwarded),
                  fmt::format("{:.0f}", measured.costs.client_ns),
                  fmt::format("{:.0f}", measured.costs.host_ns),
                  fmt::format("{:.0f}", measured.costs.device_ns),
                  fmt::format("{:.1f}", device_model(options_, measured.costs) / 1e3),
                  fmt::format("{:.1f}", of_memory / 1e3)});
      return;
    }
    Json line;
    line["bench"] = "device";
    line["experiment"] = "cache";
    line["place"] = place;
    line["cache_bytes"] = cache_bytes;
    line["pins_roots"] = device_options.pins_roots;
    line["balance"] = balance;
    line["slowness"] = options_.slowness;
    line["node_bytes"] = options_.node_bytes;
    line["keys"] = options_.load.keys;
    line["scan_percent"] = options_.load.scan_percent;
    line["threads"] = options_.load.threads;
    line["in_flight"] = options_.load.in_flight;
    line["repeat"] = repeat;
    line["ops_per_s"] = measured.ops_per_s;
    line["host_bytes_per_op"] = per_op(traffic.bytes);
    line["own_bytes_per_op"] = per_op(device.own_bytes);
    line["round_trips_per_op"] = per_op(traffic.round_trips);
    line["hit_share"] = traffic.hit_share();
    line["balanced_per_op"] = per_op(device.balanced);
    line["forwarded_per_op"] = per_op(device.forwarded);
    line["client_cpu_ns_per_op"] = measured.costs.client_ns;
    line["host_cpu_ns_per_op"] = measured.costs.host_ns;
    line["device_cpu_ns_per_op"] = measured.costs.device_ns;
    line["model_ops_per_s"] = device_model(options_, measured.costs);
    line["own_gbps"] = options_.own_gbps;
    line["host_gbps"] = options_.host_gbps;
    line["model_memory_ops_per_s"] = of_memory;
    print_line(out_, line);
  }
  [[nodiscard]] std::uint64_t measurements() const { return count_; }

 private:
  const DeviceBenchOptions& options_;
  std::ostream& out_;
  Table table_;
  std::uint64_t count_ = 0;
};

/// Returns how many measurements there were.
std::uint64_t run_cache(const DeviceBenchOptions& options, const Output& output) {
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
  Progress progress(output);
  DeviceReport report(options, output);
  progress.show("the host alone");
  const auto host = start_host(options.load);
  Store store = value_or_throw(Store::connect(local_address(*host)), "cannot connect");
  const Map map = value_or_throw(
      store.create_map(kDeviceMap, {.node_bytes = static_cast<std::uint32_t>(options.node_bytes)}),
      "cannot make the map");
  fill(map, options.load);
  for (std::uint32_t repeat = 0; repeat < options.repeats; ++repeat) {
    const DeviceMeasured alone =
        ask_rounds(local_address(*host), options.load, *host, nullptr, [](const Store&) {});
    progress.clear();
    report.add("host", repeat, {.cache_bytes = 0}, alone);
    for (const OwnDeviceOptions& each : devices) {
      progress.show(fmt::format("a device that remembers {} bytes", each.cache_bytes));
      const auto device = start_own_device(*host, each);
      const DeviceMeasured measured = measure_device(*device, *host, options.load);
      progress.clear();
      report.add("device", repeat, each, measured);
    }
  }
  return report.measurements();
}

std::optional<std::string> problem_of_workloads(const DeviceBenchOptions& options) {
  if (options.cache_bytes.size() > 1) return "--experiment ycsb takes one --cache";
  if (options.places.empty()) return "--places names no place";
  if (options.workloads.empty()) return "--workload names no workload";
  if (options.distributions.empty()) return "--distribution names none";
  const auto covers = [](Workload workload) { return covers_keys(workload); };
  if (std::ranges::any_of(options.workloads, covers)) {
    return "--workload must be of those that ask a map that is there: a to f, cloud, get, scan, "
           "mixed";
  }
  const auto is_share = [](double share) { return share >= 0 && share <= 1; };
  if (!std::ranges::all_of(options.scan_shares, is_share)) return "--scan-share must be 0 to 1";
  return std::nullopt;
}

}  // namespace

std::string device_experiment_names() {
  return fmt::to_string(fmt::join(kDeviceExperiments, ", "));
}

std::string_view place_name(TargetKind kind) { return name_in(kPlaces, kind); }

std::optional<TargetKind> parse_device_place(std::string_view text) {
  return value_in(kPlaces, text);
}

std::optional<std::string> problem_of(const DeviceBenchOptions& options) {
  if (auto problem = problem_of_experiments(options.experiments, kDeviceExperiments)) {
    return problem;
  }
  if (options.experiments.empty()) return "--experiment names none";
  if (auto problem = problem_of(options.load)) return problem;
  if (!is_node_size(options.node_bytes)) return kNoNodeSize;
  const auto weighs = [](std::uint64_t balance) { return balance <= 1000; };
  if (!std::ranges::all_of(options.balances, weighs)) return "--balance must be 0 to 1000";
  if (!(options.own_gbps > 0) || !(options.host_gbps > 0)) {
    return "--own-gbps and --host-gbps must be above 0";
  }
  if (!(options.slowness >= 1) || options.slowness > 1000) return "--slow must be 1 to 1000";
  if (options.repeats < 1 || options.repeats > 1000) return "--repeats must be 1 to 1000";
  const bool ycsb = is_chosen(options.experiments, "ycsb");
  if ((ycsb || is_chosen(options.experiments, "miss")) && options.balances.size() > 1) {
    return "--experiment ycsb and miss take one --balance";
  }
  return ycsb ? problem_of_workloads(options) : std::nullopt;
}

int run_device(const DeviceBenchOptions& options, const Output& output) {
  if (const auto problem = problem_of(options)) throw std::runtime_error(*problem);
  std::uint64_t measurements = 0;
  bool equal = true;
  if (is_chosen(options.experiments, "cache")) measurements += run_cache(options, output);
  if (is_chosen(options.experiments, "ycsb") || is_chosen(options.experiments, "miss")) {
    DeviceWorkloads workloads(options, output);
    if (is_chosen(options.experiments, "ycsb")) workloads.run_ycsb();
    if (is_chosen(options.experiments, "miss")) workloads.run_miss();
    measurements += workloads.measurements();
    equal = workloads.equal();
  }
  print_measurements(output.out, "device", measurements, options.json);
  if (!equal) say_answers_differ(output);
  return equal ? 0 : 1;
}

}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
#include "bench/device_workloads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/cpu.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kCacheBytes = std::uint64_t{64} << 20;

YcsbOptions base_of(const DeviceBenchOptions& options) {
  YcsbOptions base;
  base.keys = options.load.keys;
  base.value_bytes = static_cast<std::uint32_t>(options.load.value_bytes);
  base.ops = options.load.ops * options.load.threads;
  base.threads = options.load.threads;
  base.in_flight = options.load.in_flight;
  base.seed = options.load.seed;
  base.scan_items = static_cast<std::uint32_t>(options.load.scan_items);
  base.repeats = options.repeats;
  base.node_bytes = static_cast<std::uint32_t>(options.node_bytes);
  base.cache_bytes = options.cache_bytes.empty() ? kCacheBytes : options.cache_bytes.front();
  base.balance =
      options.balances.empty() ? 0 : static_cast<std::uint32_t>(options.balances.front());
  base.slowness = options.slowness;
  base.probe_rounds = 0;
  return base;
}

// Of d, what is hot is what was inserted lately.
Distribution distribution_of(Workload workload, Distribution wanted) {
  const bool latest = workload == Workload::d && wanted == Distribution::zipfian;
  return latest ? Distribution::latest : wanted;
}

std::string workload_label(const YcsbOptions& options) {
  std::string label = fmt::format("{} {}", name(options.workload), name(*options.distribution));
  if (options.workload == Workload::cloud) {
    label += fmt::format(" {:.0f} % scans", 100 * options.shares.scans);
  }
  return label;
}

bool is_crowded(const YcsbOptions& options, TargetKind kind) {
  const std::uint32_t workers = kind == TargetKind::device ? 2 : 1;
  return options.threads + workers > base::usable_cores().size();
}

double per_op(std::uint64_t count, const RunResult& result) {
  return static_cast<double>(count) /
         static_cast<double>(std::max<std::uint64_t>(1, result.all_ops));
}

std::vector<Table::Column> columns() {
  return {{"place", -9}, {"workload", -26}, {"cache", 10}, {"k ops/s", 10},     {"p50 ns", 9},
          {"p99 ns", 9}, {"host B/op", 10}, {"hits", 8},   {"forwarded/op", 12}};
}

}  // namespace

DeviceWorkloads::DeviceWorkloads(const DeviceBenchOptions& options, const Output& output)
    : options_(options),
      output_(output),
      progress_(output),
      base_(base_of(options)),
      keys_(make_keys(base_)),
      table_(output.out, columns()) {}

void DeviceWorkloads::run_ycsb() {
  for (const Workload workload : options_.workloads) {
    for (const Distribution distribution : options_.distributions) {
      std::vector<double> scan_shares = options_.scan_shares;
      if (workload != Workload::cloud) scan_shares = {0};
      for (const double scans : scan_shares) {
        Point point{"ycsb", "", base_};
        point.options.targets = options_.places;
        point.options.workload = workload;
        point.options.distribution = distribution_of(workload, distribution);
        point.options.shares.scans = scans;
        point.label = workload_label(point.options);
        run(point);
      }
    }
  }
}

// The host alone first, which is what misses are to be held against. All keys are as likely, so
// that leaves are as cold whatever is missed.
void DeviceWorkloads::run_miss() {
  Point point{"miss", "", base_};
  point.options.workload = Workload::get;
  point.options.distribution = Distribution::uniform;
  point.options.targets = {TargetKind::node};
  point.label = workload_label(point.options);
  run(point);
  point.options.targets = {TargetKind::device};
  for (const std::uint64_t cache_bytes :
       options_.cache_bytes.empty() ? caches_that_miss(options_) : options_.cache_bytes) {
    point.options.cache_bytes = cache_bytes;
    run(point);
  }
}

void DeviceWorkloads::run(const Point& point) {
  Runner runner(point.options, keys_, progress_);
  for (std::uint32_t repeat = 0; repeat < options_.repeats; ++repeat) {
    for (const TargetKind kind : point.options.targets) {
      const RunResult result = runner.run(kind, repeat);
      ++count_;
      compare(point, result);
      report(point, runner, result);
    }
  }
}

void DeviceWorkloads::compare(const Point& point, const RunResult& result) {
  const auto [first, is_first] = first_.try_emplace(point.label, result);
  if (is_first) return;
  equal_ = equal_ && first->second.result_hash == result.result_hash &&
           first->second.contents == result.contents;
}

void DeviceWorkloads::report(const Point& point, const Runner& runner, const RunResult& result) {
  if (options_.json) return print_line(output_.out, line_of(point, runner, result));
  const bool device = result.target == TargetKind::device;
  const auto of_device = [&](const auto& text) { return device ? text() : std::string("-"); };
  table_.row({std::string(place_name(result.target)), point.label,
              of_device([&] { return std::to_string(point.options.cache_bytes); }),
              fmt::format("{:.1f}", result.ops_per_s() / 1e3),
              std::to_string(result.latencies.percentile(0.5)),
              std::to_string(result.latencies.percentile(0.99)),
              result.traffic ? fmt::format("{:.0f}", per_op(result.traffic->bytes, result)) : "-",
              of_device([&] { return fmt::format("{:.1f} %", 100 * result.traffic->hit_share()); }),
              of_device([&] {
                return fmt::format("{:.2f}", per_op(result.traffic->of_device.forwarded, result));
              })});
}

Json DeviceWorkloads::line_of(const Point& point, const Runner& runner,
                              const RunResult& result) const {
  const YcsbOptions& options = point.options;
  Json line;
  line["bench"] = "device";
  line["experiment"] = point.experiment;
  line["place"] = place_name(result.target);
  line["workload"] = name(options.workload);
  line["distribution"] = name(runner.plan().distribution);
  if (options.workload == Workload::cloud) line["scan_share"] = options.shares.scans;
  line["keys"] = runner.keys().size();
  line["key_bytes"] = runner.keys().fixed_bytes();
  line["value_bytes"] = options.value_bytes;
  line["node_bytes"] = options.node_bytes;
  line["threads"] = options.threads;
  line["in_flight"] = options.in_flight;
  line["crowded"] = is_crowded(options, result.target);
  line["seed"] = options.seed;
  line["repeat"] = result.repeat;
  if (result.target == TargetKind::device) {
    line["cache_bytes"] = options.cache_bytes;
    line["balance"] = options.balance;
    line["slowness"] = options.slowness;
  }
  line["ops"] = result.ops;
  line["ops_per_s"] = result.ops_per_s();
  line["p50_ns"] = result.latencies.percentile(0.5);
  line["p99_ns"] = result.latencies.percentile(0.99);
  if (result.traffic) {
    line["round_trips_per_op"] = per_op(result.traffic->round_trips, result);
    line["host_bytes_per_op"] = per_op(result.traffic->bytes, result);
  }
  if (result.target == TargetKind::device) {
    const PathTraffic::OfDevice& device = result.traffic->of_device;
    line["own_bytes_per_op"] = per_op(device.own_bytes, result);
    line["hit_share"] = result.traffic->hit_share();
    line["miss_share"] = device.descents == 0 ? 0 : 1 - result.traffic->hit_share();
    line["balanced_per_op"] = per_op(device.balanced, result);
    line["forwarded_per_op"] = per_op(device.forwarded, result);
  }
  line["result_hash"] = fmt::format("{:016x}", result.result_hash);
  line["hash_covers"] = result.exact ? "exact" : "shape";
  return line;
}

// A sixteenth of a cache says where leaves are, 16 bytes for each, and that is what it runs out of
// first (kinds/map/remote/node_cache.cpp). An item takes 12 bytes besides its key and value, about.
std::vector<std::uint64_t> caches_that_miss(const DeviceBenchOptions& options) {
  constexpr std::uint64_t kForEachLeaf = 16 * 16;
  constexpr std::uint64_t kKeyAndMore = 16 + 12;
  const std::uint64_t leaves =
      options.load.keys * (options.load.value_bytes + kKeyAndMore) / options.node_bytes + 1;
  std::vector<std::uint64_t> caches;
  for (const std::uint64_t quarters : {0U, 1U, 2U, 3U, 4U, 6U, 16U}) {
    caches.push_back(leaves * kForEachLeaf * quarters / 4);
  }
  return caches;
}

}  // namespace espalier::bench

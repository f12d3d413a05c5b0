// SPDX-License-Identifier: Apache-2.0
#include "bench/device_workloads.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>

#include "base/cpu.hpp"
#include "bench/runner.hpp"
#include "bench/ycsb_options.hpp"

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

// In d, the hot keys are the newest ones.
Distribution distribution_of(Workload workload, Distribution wanted) {
  const bool latest = workload == Workload::d && wanted == Distribution::zipfian;
  return latest ? Distribution::latest : wanted;
}

bool is_crowded(const YcsbOptions& options, TargetKind kind) {
  const std::uint32_t workers = kind == TargetKind::device ? 2 : 1;
  return options.threads + workers > base::usable_cores().size();
}

double per_op(std::uint64_t count, const RunResult& result) {
  return static_cast<double>(count) /
         static_cast<double>(std::max<std::uint64_t>(1, result.all_ops));
}

Json workload_line(std::string_view experiment, const YcsbOptions& options, const Runner& runner,
                   const RunResult& result) {
  Json line{{"experiment", experiment},
            {"place", place_name(result.target)},
            {"workload", name(options.workload)},
            {"distribution", name(runner.plan().distribution)}};
  if (options.workload == Workload::cloud) line["scan_share"] = options.shares.scans;
  line.update({{"keys", runner.keys().size()},
               {"key_bytes", runner.keys().fixed_bytes()},
               {"value_bytes", options.value_bytes},
               {"node_bytes", options.node_bytes},
               {"threads", options.threads},
               {"in_flight", options.in_flight},
               {"crowded", is_crowded(options, result.target)},
               {"seed", options.seed},
               {"repeat", result.repeat}});
  if (result.target == TargetKind::device) {
    line.update({{"cache_bytes", options.cache_bytes},
                 {"balance", options.balance},
                 {"slowness", options.slowness}});
  }
  line.update({{"ops", result.ops},
               {"ops_per_s", result.ops_per_s()},
               {"p50_ns", result.latencies.percentile(0.5)},
               {"p99_ns", result.latencies.percentile(0.99)}});
  if (result.traffic) {
    line["round_trips_per_op"] = per_op(result.traffic->round_trips, result);
    line["host_bytes_per_op"] = per_op(result.traffic->bytes, result);
  }
  if (result.target == TargetKind::device) {
    const PathTraffic::OfDevice& device = result.traffic->of_device;
    const double hits = result.traffic->hit_share();
    line.update({{"own_bytes_per_op", per_op(device.own_bytes, result)},
                 {"hit_share", hits},
                 {"miss_share", device.descents == 0 ? 0 : 1 - hits},
                 {"balanced_per_op", per_op(device.balanced, result)},
                 {"forwarded_per_op", per_op(device.forwarded, result)}});
  }
  line["result_hash"] = hex(result.result_hash);
  line["hash_covers"] = result.exact ? "exact" : "shape";
  return line;
}

/// Runs points of an experiment, each at all of its targets in turn.
class DeviceWorkloads {
 public:
  DeviceWorkloads(std::string_view experiment, const DeviceBenchOptions& options, Report& report)
      : experiment_(experiment),
        repeats_(options.repeats),
        report_(report),
        base_(base_of(options)),
        keys_(make_keys(base_)) {
    report_.table({{"place", -9, "place"},
                   {"workload", -8, "workload"},
                   {"keys", -8, "distribution"},
                   {"scans", 6, "scan_share"},
                   {"cache", 10, "cache_bytes"},
                   {"k ops/s", 10, "ops_per_s", 1, 1e-3},
                   {"p50 ns", 9, "p50_ns"},
                   {"p99 ns", 9, "p99_ns"},
                   {"host B/op", 10, "host_bytes_per_op", 0},
                   {"hits", 8, "hit_share", 1, 100, " %"},
                   {"forwarded/op", 12, "forwarded_per_op", 2}});
  }
  [[nodiscard]] const YcsbOptions& base() const { return base_; }

  /// `first`: the run with which all others must agree; set to this point's first run if there is
  /// none.
  void run(const YcsbOptions& point, std::optional<RunResult>& first) {
    Runner runner(point, keys_, report_.progress());
    for (std::uint32_t repeat = 0; repeat < repeats_; ++repeat) {
      for (const TargetKind kind : point.targets) {
        const RunResult result = runner.run(kind, repeat);
        if (!first) first = result;
        if (first->result_hash != result.result_hash || first->contents != result.contents) {
          report_.differ();
        }
        report_.line(workload_line(experiment_, point, runner, result));
      }
    }
  }

 private:
  const std::string_view experiment_;
  const std::uint32_t repeats_;
  Report& report_;
  const YcsbOptions base_;
  const std::shared_ptr<const KeySet> keys_;
};

}  // namespace

void run_device_ycsb(const DeviceBenchOptions& options, Report& report) {
  DeviceWorkloads workloads("ycsb", options, report);
  YcsbOptions point = workloads.base();
  point.targets = options.places;
  for (const Workload workload : options.workloads) {
    for (const Distribution distribution : options.distributions) {
      std::vector<double> scan_shares = options.scan_shares;
      if (workload != Workload::cloud) scan_shares = {0};
      for (const double scans : scan_shares) {
        point.workload = workload;
        point.distribution = distribution_of(workload, distribution);
        point.shares.scans = scans;
        std::optional<RunResult> first;
        workloads.run(point, first);
      }
    }
  }
}

// The host alone first, the baseline of misses. All keys are equally likely, so that leaves are
// equally cold at any share of misses.
void run_device_miss(const DeviceBenchOptions& options, Report& report) {
  DeviceWorkloads workloads("miss", options, report);
  YcsbOptions point = workloads.base();
  point.workload = Workload::get;
  point.distribution = Distribution::uniform;
  point.targets = {TargetKind::node};
  std::optional<RunResult> first;
  workloads.run(point, first);
  point.targets = {TargetKind::device};
  for (const std::uint64_t cache_bytes :
       options.cache_bytes.empty() ? caches_that_miss(options) : options.cache_bytes) {
    point.cache_bytes = cache_bytes;
    workloads.run(point, first);
  }
}

// A sixteenth of a cache has the places of leaves, 16 bytes each, and runs out first
// (kinds/map/remote/node_cache.cpp). An item takes about 12 bytes besides its key and value.
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

// SPDX-License-Identifier: Apache-2.0
// `espalier-bench device`: requests through a device before a node, beside asking that node alone.
// Host and device are of this process, with a worker each.
//
//   cache   reads, by what the device may remember and by its balancer's weight [Honeycomb §6.6,
//           Fig. 16]; beside the clock's rate stands a model's: turn_costs.hpp
//   ycsb    YCSB and honeycomb's cloud storage, which write too [Honeycomb Figs. 10 and 11]; also
//           by clients that read the node's memory alone
//   miss    gets, by the share of them whose way the device has to read of its host's memory
//           [Rambda Fig. 1]
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "bench/point_options.hpp"
#include "bench/read_load.hpp"
#include "bench/target.hpp"
#include "bench/workload.hpp"

namespace espalier::bench {

struct DeviceBenchOptions : PointOptions {
  static constexpr const char* kBench = "device";
  static constexpr const char* kSummary = "requests through a device, beside its host alone";
  DeviceBenchOptions() { repeats = 1; }  // rounds, in each of which all ways take turns

  ReadLoad load{};  ///< ycsb and miss take all of it but the share of scans
  /// Of the device, besides the root, which it always keeps. Empty: 0, 1 MiB, 64 MiB (cache);
  /// 64 MiB (ycsb); from nothing to what knows each leaf (miss).
  std::vector<std::uint64_t> cache_bytes;
  bool bare = false;  ///< cache: first a device that remembers nothing, its map's root included
  /// What the device's own memory and the way to its host's give, in GB/s, for the model of both:
  /// as in [Honeycomb §2, §6.1], two channels of DDR4-2133 and PCIe.
  double own_gbps = 34.1;
  double host_gbps = 13;
  std::vector<std::uint64_t> balances;  ///< weights; 0: off. Empty: 0, 1 (cache), 0 (ycsb, miss)
  std::uint64_t node_bytes = 8192;
  double slowness = 1;  ///< of the device's core: node::WorkerCore
  // Those below: ycsb.
  std::vector<TargetKind> places{TargetKind::node, TargetKind::one_sided, TargetKind::device};
  std::vector<Workload> workloads{Workload::a, Workload::b, Workload::c,    Workload::d,
                                  Workload::e, Workload::f, Workload::cloud};
  /// zipfian: of workload d, latest.
  std::vector<Distribution> distributions{Distribution::zipfian, Distribution::uniform};
  std::vector<double> scan_shares{0.5, 0.8, 1};  ///< workload cloud

  void declare(OptionRows& rows);
  [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
};

/// Where the map is asked, as lines have it: host, one-sided, device.
[[nodiscard]] std::string_view place_name(TargetKind kind);
[[nodiscard]] std::optional<TargetKind> parse_device_place(std::string_view text);

}  // namespace espalier::bench

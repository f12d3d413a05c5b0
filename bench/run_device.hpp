// SPDX-License-Identifier: Apache-2.0
// `espalier-bench device`: requests through a device before a node, compared with the node alone.
// Host and device run in this process, with a worker each.
//
//   cache   reads, by the size of the device's cache and by its balancer's weight [Honeycomb §6.6,
//           Fig. 16]; beside the measured rate stands a model's: turn_costs.hpp
//   ycsb    YCSB and honeycomb's cloud storage, which write too [Honeycomb Figs. 10 and 11]; also
//           by clients with one-sided reads
//   miss    gets, by the share of them for which the device must read its host's memory
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
  DeviceBenchOptions() { repeats = 1; }  // rounds, each with all paths in turn

  ReadLoad load{};  ///< ycsb and miss ignore the share of scans
  /// The device's cache, besides the root, which it always keeps. Empty: 0, 1 MiB, 64 MiB (cache);
  /// 64 MiB (ycsb); from nothing to all leaves' paths (miss).
  std::vector<std::uint64_t> cache_bytes;
  bool bare = false;  ///< cache: first a device that caches nothing, not even the root
  /// Bandwidth of the device's memory and of the path to its host's, in GB/s, for the model of
  /// both: as in [Honeycomb §2, §6.1], two channels of DDR4-2133 and PCIe.
  double own_gbps = 34.1;
  double host_gbps = 13;
  std::vector<std::uint64_t> balances;  ///< weights; 0: off. Empty: 0, 1 (cache), 0 (ycsb, miss)
  std::uint64_t node_bytes = 8192;
  double slowness = 1;  ///< of the device's core: node::WorkerCore
  // For ycsb.
  std::vector<TargetKind> places{TargetKind::node, TargetKind::one_sided, TargetKind::device};
  std::vector<Workload> workloads{Workload::a, Workload::b, Workload::c,    Workload::d,
                                  Workload::e, Workload::f, Workload::cloud};
  /// zipfian: of workload d, latest.
  std::vector<Distribution> distributions{Distribution::zipfian, Distribution::uniform};
  std::vector<double> scan_shares{0.5, 0.8, 1};  ///< workload cloud

  void declare(OptionRows& rows);
  [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
};

/// The place of the map's reads in lines: host, one-sided, device.
[[nodiscard]] std::string_view place_name(TargetKind kind);
[[nodiscard]] std::optional<TargetKind> parse_device_place(std::string_view text);

}  // namespace espalier::bench

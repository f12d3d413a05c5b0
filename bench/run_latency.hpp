// SPDX-License-Identifier: Apache-2.0
// `espalier-bench latency`: latency against throughput, as the load rises [Honeycomb Fig. 12].
//
//   closed   by how many requests are in flight: the next one begins when one has ended
//   open     by how many requests are due in a second, whether earlier ones have ended or not;
//            latencies count from when each was due, so that queueing is included
//
// Both print throughput with p50, p99 and p99.9: points of a curve. Targets are filled once.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/ycsb_options.hpp"

namespace espalier::bench {

/// `workload` is ignored; `in_flight` is the limit of the open experiment; a point lasts about
/// `seconds`.
struct LatencyOptions : YcsbOptions {
  static constexpr const char* kBench = "latency";
  static constexpr const char* kSummary = "latency against throughput, as load rises";
  LatencyOptions() {
    targets = {TargetKind::node};
    in_flight = 256;
    seconds = 2;
  }

  std::vector<Workload> workloads{Workload::c, Workload::scan};
  std::vector<std::uint32_t> depths{1, 2, 4, 8, 16, 32, 64, 128, 256};  ///< closed
  /// open: shares of the target's maximum, measured before
  std::vector<double> loads{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1};
  std::vector<double> rates;  ///< open: requests per second, in place of `loads`

  void declare(OptionRows& rows);
  [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
};

}  // namespace espalier::bench

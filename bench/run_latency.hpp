// SPDX-License-Identifier: Apache-2.0
// `espalier-bench latency`: latency against throughput, as the load rises [Honeycomb Fig. 12].
//
//   closed   by how many requests are in flight: the next one begins when one has ended
//   open     by how many requests are due in a second, whether earlier ones have ended or not;
//            latencies count from when each was due, so that waiting in a queue is counted
//
// Both print throughput beside p50, p99 and p99.9: points of a curve. Targets are filled once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/output.hpp"
#include "bench/ycsb_options.hpp"

namespace espalier::bench {

struct LatencyOptions {
  LatencyOptions() {
    base.targets = {TargetKind::node};
    base.in_flight = 256;
    base.seconds = 2;
  }

  /// `workload` of it does not count, `in_flight` is the most of the open experiment, and `seconds`
  /// how long a point lasts, about.
  YcsbOptions base;
  std::vector<std::string> experiments;  ///< none: all
  std::vector<Workload> workloads{Workload::c, Workload::scan};
  std::vector<std::uint32_t> depths{1, 2, 4, 8, 16, 32, 64, 128, 256};  ///< closed
  /// open: shares of what the target does at most, as measured before
  std::vector<double> loads{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1};
  std::vector<double> rates;  ///< open: requests per second, in place of `loads`
};

/// The names of all experiments, with commas between.
std::string latency_experiment_names();

/// What is wrong with the options, in one sentence; nothing if all is well.
std::optional<std::string> problem_of(const LatencyOptions& options);

/// Returns what main should: 1 if answers that should be equal were not.
/// Errors: throws std::runtime_error or std::bad_alloc.
int run_latency(const LatencyOptions& options, const Output& output);

}  // namespace espalier::bench

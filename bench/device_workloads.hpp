// SPDX-License-Identifier: Apache-2.0
// The experiments of `espalier-bench device` that run workloads: ycsb and miss. The same requests
// use each path (bench/runner.hpp), and their answers are compared.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/report.hpp"
#include "bench/run_device.hpp"

namespace espalier::bench {

void run_device_ycsb(const DeviceBenchOptions& options, Report& report);
void run_device_miss(const DeviceBenchOptions& options, Report& report);

/// Sizes of a device's cache for a map of so many keys, from one that holds no path to one that
/// holds all.
[[nodiscard]] std::vector<std::uint64_t> caches_that_miss(const DeviceBenchOptions& options);

}  // namespace espalier::bench

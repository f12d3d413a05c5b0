// SPDX-License-Identifier: Apache-2.0
// `espalier-bench device`: reads through a device before a node, by what it may remember and by its
// balancer's weight [Honeycomb §6.6, Fig. 16], beside asking the host. Host and device are of this
// process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/output.hpp"
#include "bench/read_load.hpp"

namespace espalier::bench {

struct DeviceBenchOptions {
  ReadLoad load{};
  /// Of the device, besides the root, which it always keeps. Empty: 0, 1 MiB, 64 MiB.
  std::vector<std::uint64_t> cache_bytes;
  std::vector<std::uint64_t> balances;  ///< weights; 0: off. Empty: 0, 1
  std::uint64_t node_bytes = 8192;
  bool json = false;
};

/// What is wrong with the options, in one sentence; nothing if all is well.
std::optional<std::string> problem_of(const DeviceBenchOptions& options);

/// Returns what main should. Errors: throws std::runtime_error or std::bad_alloc.
int run_device(const DeviceBenchOptions& options, const Output& output);

}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
// `espalier-bench one-sided`: reads of a map by a client alone, by the size of nodes, by what the
// client remembers and by transport [DPU §5, Figs. 9, 10], with the waits and the bytes of each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/node_transport.hpp"
#include "bench/output.hpp"
#include "bench/read_load.hpp"

namespace espalier::bench {

struct OneSidedBenchOptions {
  ReadLoad load{};
  std::vector<NodeTransport> transports;   ///< empty: shm, roce-udp
  std::vector<std::uint64_t> node_bytes;   ///< empty: 512, 1024, ... 8192
  std::vector<std::uint64_t> cache_bytes;  ///< empty: 0, 32 MiB
  bool json = false;
};

/// What is wrong with the options, in one sentence; nothing if all is well.
std::optional<std::string> problem_of(const OneSidedBenchOptions& options);

/// Returns what main should. Errors: throws std::runtime_error or std::bad_alloc.
int run_one_sided(const OneSidedBenchOptions& options, const Output& output);

}  // namespace espalier::bench

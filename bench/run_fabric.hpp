// SPDX-License-Identifier: Apache-2.0
// `espalier-bench fabric`: what the verbs cost, transport by transport, with one thread that asks
// and one that is asked.
//
//   verbs    each verb, by size and by how many are in flight
//   batch    READs of 64 bytes, by how many are posted with one doorbell; and WRITEs, 16 with each,
//            inlined, every 16th told
//   loss     READs of 64 bytes, 16 in flight, by the share of packets that get lost (roce alone)
//   atomics  two threads that add to one word: FETCH_ADD beside plain instructions (shm alone)
//   local    READs of 64 bytes beside memcpy over the same addresses (shm alone)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/fabric_ends.hpp"
#include "bench/output.hpp"
#include "bench/point_run.hpp"

namespace espalier::bench {

struct FabricOptions : PointOptions {
  std::vector<FabricKind> transports{FabricKind::shm, FabricKind::roce_udp};
  std::vector<std::uint32_t> bytes{8, 64, 1024, 4096, 65536};
  std::vector<std::uint32_t> in_flight{1, 32};
  std::vector<std::uint32_t> batches{1, 4, 16, 64};
  std::vector<double> losses{0, 0.01, 0.2};
  std::uint64_t region_bytes = std::uint64_t{64} << 20;
  std::uint64_t ops = 400'000;  ///< of a measurement with small messages; long ones do fewer
};

/// The names of all experiments, with commas between.
std::string fabric_experiment_names();

/// What is wrong with the options, in one sentence; nothing if all is well.
std::optional<std::string> problem_of(const FabricOptions& options);

/// Returns what main should: 1 if points that should agree did not.
/// Errors: throws std::runtime_error or std::bad_alloc.
int run_fabric(const FabricOptions& options, const Output& output);

}  // namespace espalier::bench

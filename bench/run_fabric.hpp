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
#include <vector>

#include "bench/fabric_ends.hpp"
#include "bench/point_options.hpp"

namespace espalier::bench {

struct FabricOptions : PointOptions {
  static constexpr const char* kBench = "fabric";
  static constexpr const char* kSummary = "the verbs, transport by transport";

  std::vector<FabricKind> transports{FabricKind::shm, FabricKind::roce_udp};
  std::vector<std::uint32_t> bytes{8, 64, 1024, 4096, 65536};
  std::vector<std::uint32_t> in_flight{1, 32};
  std::vector<std::uint32_t> batches{1, 4, 16, 64};
  std::vector<double> losses{0, 0.01, 0.2};
  std::uint64_t region_bytes = std::uint64_t{64} << 20;
  std::uint64_t ops = 400'000;  ///< of a measurement with small messages; long ones do fewer

  void declare(OptionRows& rows);
  [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
};

}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
// `espalier-bench one-sided`: reads of a map by a client alone, by the size of nodes, by what the
// client remembers and by transport [DPU §5, Figs. 9, 10], with the waits and the bytes of each.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/node_transport.hpp"
#include "bench/point_options.hpp"
#include "bench/read_load.hpp"

namespace espalier::bench {

struct OneSidedBenchOptions : PointOptions {
  static constexpr const char* kBench = "one-sided";
  static constexpr const char* kSummary = "reads by a client alone, by node size and memory";

  ReadLoad load{};
  std::vector<NodeTransport> transports{NodeTransport::shm, NodeTransport::roce_udp};
  std::vector<std::uint64_t> node_bytes{512, 1024, 2048, 4096, 8192};
  std::vector<std::uint64_t> cache_bytes{0, std::uint64_t{32} << 20};

  void declare(OptionRows& rows);
  [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
};

}  // namespace espalier::bench

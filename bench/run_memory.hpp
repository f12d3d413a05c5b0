// SPDX-License-Identifier: Apache-2.0
// `espalier-bench memory`: what this machine's memory can do, for the other numbers to be read by.
//
//   latency    a chain of dependent loads through blocks of growing size
//   in-flight  1 to 64 independent chains through a large block: how many misses a core overlaps
//   bandwidth  sequential reading, and copying, by one core
//
// All blocks lie on huge pages where the system grants them.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/point_options.hpp"

namespace espalier::bench {

struct MemoryOptions : PointOptions {
  static constexpr const char* kBench = "memory";
  static constexpr const char* kSummary = "latency and bandwidth of this machine";

  std::uint64_t bytes_max = std::uint64_t{1} << 30;  ///< the largest block
  double seconds = 0.2;                              ///< for each measurement, about

  void declare(OptionRows& rows);
  [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
};

}  // namespace espalier::bench

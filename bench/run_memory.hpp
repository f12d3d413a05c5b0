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
#include <optional>
#include <string>

#include "bench/output.hpp"

namespace espalier::bench {

struct MemoryOptions {
  std::uint64_t bytes_max = std::uint64_t{1} << 30;  ///< the largest block
  double seconds = 0.2;                              ///< for each measurement, about
  std::uint64_t seed = 1;
  bool json = false;
  std::uint32_t probe_rounds = 20;
};

/// What is wrong with the options, in one sentence; nothing if all is well.
std::optional<std::string> problem_of(const MemoryOptions& options);

/// Returns what main should. Errors: throws std::runtime_error or std::bad_alloc.
int run_memory(const MemoryOptions& options, const Output& output);

}  // namespace espalier::bench

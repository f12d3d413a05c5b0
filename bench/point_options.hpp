// SPDX-License-Identifier: Apache-2.0
// Options that all benchmarks have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace espalier::bench {

class OptionRows;
struct ExperimentRow;

struct PointOptions {
  std::uint64_t seed = 1;
  std::uint32_t repeats = 5;
  bool json = false;
  std::uint32_t probe_rounds = 20;         ///< of the ping-pong before and after; 0: none
  std::vector<std::string> experiments{};  ///< empty: all but those that run only if named
};

}  // namespace espalier::bench

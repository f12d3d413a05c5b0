// SPDX-License-Identifier: Apache-2.0
// What all benchmarks are told.
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
  std::vector<std::string> experiments{};  ///< empty: all that are not asked for by name alone
};

}  // namespace espalier::bench

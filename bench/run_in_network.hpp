// SPDX-License-Identifier: Apache-2.0
// `espalier-bench in-network`: how many READs a get takes when switches know the top of the tree,
// counted exactly over trees that are built from ranks [Fat-B+Tree §V-B, Figs. 5 to 9], figure by
// figure (figure_points.hpp), and how long compiling the tables takes. What begins with `model_`
// follows from these counts where each READ costs the same, and is no time of a clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/output.hpp"

namespace espalier::bench {

struct InNetworkOptions {
  std::vector<std::string> experiments;  ///< empty: all
  std::uint64_t keys = 2'000'000;
  std::uint32_t fanout = 12;
  std::uint64_t ranges = 600;
  std::uint64_t sets = 3;
  std::uint64_t nodes_per_set = 3600;
  std::uint64_t model_trip_ns = 16'100;  ///< for `model_...`: a trip, as the paper has it
  std::uint64_t seed = 1;
  bool json = false;
};

/// What is wrong with the options, in one sentence; nothing if all is well.
std::optional<std::string> problem_of(const InNetworkOptions& options);

/// Returns what main should. Errors: throws std::runtime_error or std::bad_alloc.
int run_in_network(const InNetworkOptions& options, const Output& output);

}  // namespace espalier::bench

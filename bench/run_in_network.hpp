// SPDX-License-Identifier: Apache-2.0
// `espalier-bench in-network`: how many READs a get takes when switches know the top of the tree,
// counted exactly over trees that are built from ranks [Fat-B+Tree §V-B, Figs. 5 to 9], figure by
// figure (figure_points.hpp), and how long compiling the tables takes. What begins with `model_`
// follows from these counts where each READ costs the same, and is no time of a clock.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/point_options.hpp"

namespace espalier::bench {

struct InNetworkOptions : PointOptions {
  static constexpr const char* kBench = "in-network";
  static constexpr const char* kSummary = "READs that are left when switches know the tree's top";

  std::uint64_t keys = 2'000'000;
  std::uint32_t fanout = 12;
  std::uint64_t ranges = 600;
  std::uint64_t sets = 3;
  std::uint64_t nodes_per_set = 3600;
  std::uint64_t model_trip_ns = 16'100;  ///< for `model_...`: a trip, as the paper has it

  void declare(OptionRows& rows);
  [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
};

}  // namespace espalier::bench

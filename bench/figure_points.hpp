// SPDX-License-Identifier: Apache-2.0
// The points at which [Fat-B+Tree §V-B] measures a get through switches that know the tree's top,
// figure by figure; the caller sets the other parameters.
//
//   scale    Fig. 5: half to five times as many keys
//   changed  Fig. 6: from none to all of the requests follow other ranks than the tables were made
//            from
//   skew     Fig. 7: 0.9, 0.95, 0.99
//   nodes    Fig. 8: 300 to 3900 nodes in each set
//   layers   Fig. 9: no sets to three
//
// Thread: any.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/zipf.hpp"
#include "bench/rank_tree.hpp"
#include "dataplane/compiler.hpp"

namespace espalier::bench {

inline constexpr std::array<const char*, 5> kFigures{"scale", "changed", "skew", "nodes", "layers"};

/// The tree, the tables, and the requests.
struct FigurePoint {
  std::string figure;  ///< empty: none
  std::uint64_t keys = 0;
  double theta = base::kZipfTheta;
  double changed = 0;  ///< share of requests that follow other ranks
  dataplane::TableLimits limits{};
};

/// Names of the figures, comma-separated.
[[nodiscard]] std::string figure_names();

/// Requires: a name of kFigures. `usual`: the parameters that the figure does not vary.
[[nodiscard]] std::vector<FigurePoint> points_of(std::string_view figure, const FigurePoint& usual);

/// The input of a point's tables, and the relative frequency of requests for each key.
struct FigureRequests {
  RankTree tree;
  std::vector<std::uint64_t> accesses;
};

/// Cost: a power for each key, two where the workload changes.
[[nodiscard]] FigureRequests requests_of(const FigurePoint& point, std::uint32_t fanout,
                                         std::uint64_t seed);

}  // namespace espalier::bench

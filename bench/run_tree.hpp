// SPDX-License-Identifier: Apache-2.0
// `espalier-bench tree`: the parameters of the map's speed, one at a time.
//
// An experiment is a list of points (tree_points.cpp); a point is a run of `bench ycsb` with some
// options set. With several repeats an experiment runs through its points repeatedly, so that a
// change of the machine affects all of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/ycsb_options.hpp"

namespace espalier::bench {

/// Parameters that its points do not set, and the targets: see TreePoint.
struct TreeOptions : YcsbOptions {
  static constexpr const char* kBench = "tree";
  static constexpr const char* kSummary = "the map's speed, one parameter at a time";
  void declare(OptionRows& rows) { declare_common(rows); }
  [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
};

/// The experiment that also measures sequential reading.
inline constexpr std::string_view kScanLength = "scan-length";

[[nodiscard]] std::span<const std::string_view> tree_experiments();

/// One combination of parameters.
struct TreePoint {
  std::string label;  ///< the parameter that is varied, as "log_bytes=512"
  YcsbOptions options;
};

/// The points of an experiment. Peers among the targets run only if the varied parameter applies to
/// them.
[[nodiscard]] std::vector<TreePoint> tree_points(std::string_view experiment,
                                                 const YcsbOptions& base);

}  // namespace espalier::bench

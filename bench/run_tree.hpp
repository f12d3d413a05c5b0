// SPDX-License-Identifier: Apache-2.0
// `espalier-bench tree`: what the map's speed depends on, one parameter at a time.
//
// An experiment is a list of points; a point is a run of `bench ycsb` with some options set. With
// several repeats an experiment goes through its points again and again, so that a change of the
// machine meets all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/output.hpp"
#include "bench/ycsb_options.hpp"

namespace espalier::bench {

enum class Experiment : std::uint8_t {
  lookups,      // uniform and zipfian, one at a time and many in flight
  inserts,      // into an empty map, in random and in ascending order
  erase,        // all keys in random order
  scan_length,  // 1 to 1000 items
  node_size,    // 512 B to 64 KiB
  log_size,     // 0 to 2048 B [Honeycomb Fig. 17]
  key_size,     // 8 to 256 B, values as long as keys [Honeycomb Fig. 14]
  versions,     // on and off [Honeycomb Fig. 15]
  in_flight,    // 1 to 64
};

std::string_view name(Experiment experiment);
std::optional<Experiment> parse_experiment(std::string_view text);
std::span<const Experiment> all_experiments();

struct TreeOptions {
  std::vector<Experiment> experiments;  ///< none: all
  YcsbOptions base;                     ///< what the points do not set; targets: see Point
};

/// One combination of parameters.
struct Point {
  std::string label;   ///< the parameter that is varied, as "log_bytes=512"
  YcsbOptions options;
};

/// The points of an experiment. Peers among the targets run only where the varied parameter means
/// something to them.
std::vector<Point> points_of(Experiment experiment, const YcsbOptions& base);

/// What is wrong with the options, in one sentence; nothing if all is well.
std::optional<std::string> problem_of(const TreeOptions& options);

/// Returns what main should: 1 if targets gave different answers at a point.
/// Errors: throws std::runtime_error with a sentence for the user.
int run_tree(const TreeOptions& options, const Output& output);

}  // namespace espalier::bench

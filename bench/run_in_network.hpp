// SPDX-License-Identifier: Apache-2.0
// `espalier-bench in-network`: how many READs a get takes when switches know the top of the tree,
// counted exactly over trees that are built from ranks [Fat-B+Tree §V-B, Figs. 5 to 9], and how
// long compiling the tables takes.
//
//   scale    half of --keys to five times as many
//   changed  from none to all of the requests follow other ranks than the tables were made from
//   skew     0.9, 0.95, 0.99
//   nodes    300 to 3900 nodes in each set
//   layers   no sets to three
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
  std::uint64_t seed = 1;
  bool json = false;
};

/// Names of the experiments, with commas.
[[nodiscard]] std::string in_network_experiment_names();

/// What is wrong with the options, in one sentence; nothing if all is well.
std::optional<std::string> problem_of(const InNetworkOptions& options);

/// Returns what main should. Errors: throws std::runtime_error or std::bad_alloc.
int run_in_network(const InNetworkOptions& options, const Output& output);

}  // namespace espalier::bench

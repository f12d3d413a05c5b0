// SPDX-License-Identifier: Apache-2.0
// Trees as in [Fat-B+Tree §V], built from ranks: every node has the same number of children, there
// is one leaf for each key, and a key's count follows its rank, with ranks scattered over the keys.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/index_tables.hpp"
#include "dataplane/tree_image.hpp"

namespace espalier::bench {

struct RankTree {
  std::uint32_t levels = 0;  // of nodes above the leaves
  std::uint64_t step = 0;    // key i is i * step
  dataplane::TreeImage tree;
};

/// Relative frequencies of keys: 1 / (rank + 1)^theta, with ranks scattered by the seed. They sum
/// to about 2^50. Cost: a power for each key.
[[nodiscard]] std::vector<std::uint64_t> scattered_ranks(std::uint64_t keys, double theta,
                                                         std::uint64_t seed);

/// Requires: fanout >= 2, keys.
[[nodiscard]] RankTree make_rank_tree(const std::vector<std::uint64_t>& accesses,
                                      std::uint32_t fanout);

/// The READs that remain with these tables: from the node that they find down to the leaf,
/// inclusive. `shares[n]` is the share of accesses that takes n READs.
struct Trips {
  double mean = 0;
  std::uint32_t p99 = 0;
  std::vector<double> shares;
};

/// Exactly, over all keys. Cost: a lookup for each key.
[[nodiscard]] Trips count_trips(const RankTree& tree, const dataplane::IndexTables& tables,
                                const std::vector<std::uint64_t>& accesses);

}  // namespace espalier::bench

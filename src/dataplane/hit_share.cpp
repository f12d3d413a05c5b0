// SPDX-License-Identifier: Apache-2.0
#include "dataplane/hit_share.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace espalier::dataplane {

double hit_share(const TreeImage& tree, const IndexTables& tables) {
  double all = 0;
  double hits = 0;
  // Nodes that are still to be seen, with the first number that leads there.
  std::vector<std::pair<NodeNumber, std::uint64_t>> left{{tree.root(), 0}};
  while (!left.empty()) {
    const auto [node, first] = left.back();
    left.pop_back();
    if (tree.is_leaf(node)) {
      const auto accesses = static_cast<double>(tree.accesses(node));
      all += accesses;
      if (find(tables, first).address == tree.address(node)) hits += accesses;
      continue;
    }
    const auto children = tree.children(node);
    const auto separators = tree.separators(node);
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (children[i] != kHere) left.emplace_back(children[i], i == 0 ? first : separators[i - 1]);
    }
  }
  return all == 0 ? 0 : hits / all;
}

}  // namespace espalier::dataplane

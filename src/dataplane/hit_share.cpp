// SPDX-License-Identifier: Apache-2.0
#include "dataplane/hit_share.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace espalier::dataplane {

namespace {

/// Calls `see` with each leaf: where the tables send its first number, and the addresses on the way
/// to it, its own the last.
template <class See>
void see_leaves(const TreeImage& tree, const IndexTables& tables, const See& see) {
  struct Left {
    NodeNumber node;
    std::uint64_t first;  // the first number that leads there
    std::size_t depth;
  };
  std::vector<Left> left{{tree.root(), 0, 0}};
  std::vector<std::uint64_t> way;
  while (!left.empty()) {
    const auto [node, first, depth] = left.back();
    left.pop_back();
    way.resize(depth);
    way.push_back(tree.address(node));
    if (tree.is_leaf(node)) {
      see(static_cast<double>(tree.accesses(node)), find(tables, first).address, way);
      continue;
    }
    const auto children = tree.children(node);
    const auto separators = tree.separators(node);
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (children[i] == kHere) continue;
      left.push_back({children[i], i == 0 ? first : separators[i - 1], depth + 1});
    }
  }
}

}  // namespace

double hit_share(const TreeImage& tree, const IndexTables& tables) {
  double all = 0;
  double hits = 0;
  see_leaves(tree, tables, [&](double accesses, std::uint64_t found, const auto& way) {
    all += accesses;
    if (found == way.back()) hits += accesses;
  });
  return all == 0 ? 0 : hits / all;
}

double reads_left(const TreeImage& tree, const IndexTables& tables) {
  double all = 0;
  double reads = 0;
  see_leaves(tree, tables, [&](double accesses, std::uint64_t found, const auto& way) {
    all += accesses;
    const auto at = std::find(way.rbegin(), way.rend(), found);
    reads += accesses * static_cast<double>(at - way.rbegin() + (at == way.rend() ? 1 : 0));
  });
  return all == 0 ? 0 : reads / all;
}

}  // namespace espalier::dataplane

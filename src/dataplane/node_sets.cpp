// SPDX-License-Identifier: Apache-2.0
#include "dataplane/node_sets.hpp"

#include <algorithm>

namespace espalier::dataplane {
namespace {

// Keeps the hottest of these, in the order in which they stand.
void keep_hottest(const TreeImage& tree, std::vector<NodeNumber>& nodes, std::size_t count) {
  if (nodes.size() <= count) return;
  std::vector<std::size_t> order(nodes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto cut = order.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(order.begin(), cut, order.end(), [&](std::size_t a, std::size_t b) {
    const auto of_a = tree.accesses(nodes[a]);
    const auto of_b = tree.accesses(nodes[b]);
    return of_a != of_b ? of_a > of_b : a < b;
  });
  order.erase(cut, order.end());
  std::ranges::sort(order);
  std::vector<NodeNumber> kept;
  kept.reserve(order.size());
  for (const std::size_t at : order) kept.push_back(nodes[at]);
  nodes = std::move(kept);
}

}  // namespace

std::vector<std::vector<NodeNumber>> choose_node_sets(const TreeImage& tree, const FatRoot& root,
                                                      std::span<const std::size_t> budgets) {
  std::vector<std::vector<NodeNumber>> sets;
  std::vector<NodeNumber> next;
  for (const FatRange& range : root.ranges) {
    if (!range.here && !tree.is_leaf(range.node)) next.push_back(range.node);
  }
  for (const std::size_t budget : budgets) {
    keep_hottest(tree, next, budget);
    if (next.empty()) break;
    std::vector<NodeNumber> below;
    for (const NodeNumber node : next) {
      for (const NodeNumber child : tree.children(node)) {
        if (child != kHere && !tree.is_leaf(child)) below.push_back(child);
      }
    }
    sets.push_back(std::move(next));
    next = std::move(below);
  }
  return sets;
}

}  // namespace espalier::dataplane

// SPDX-License-Identifier: Apache-2.0
#include "dataplane/node_sets.hpp"

#include <algorithm>
#include <utility>

namespace espalier::dataplane {
namespace {

// A node of one of the trees.
struct OfTree {
  std::size_t tree;
  NodeNumber node;
};

/// Layers of several trees, from the ranges of their fat roots down.
class Chooser {
 public:
  Chooser(std::span<const TreeImage> trees, std::span<const FatRoot> roots)
      : trees_(trees), next_(trees.size()), made_(trees.size()) {
    for (std::size_t tree = 0; tree < trees.size(); ++tree) {
      for (const FatRange& range : roots[tree].ranges) {
        if (!range.here && !trees[tree].is_leaf(range.node)) next_[tree].push_back(range.node);
      }
    }
  }

  void add(const LayerBudget& budget) {
    for (std::size_t group = 0; group < budget.nodes.size(); ++group) {
      keep_hottest(members_of(budget, group), budget.nodes[group]);
    }
    for (std::size_t tree = 0; tree < trees_.size(); ++tree) {
      std::vector<NodeNumber> nodes = std::exchange(next_[tree], {});
      if (budget.group_of[tree] == LayerBudget::kNoGroup || nodes.empty()) continue;
      for (const NodeNumber node : nodes) {
        for (const NodeNumber child : trees_[tree].children(node)) {
          if (child != kHere && !trees_[tree].is_leaf(child)) next_[tree].push_back(child);
        }
      }
      made_[tree].push_back(std::move(nodes));
    }
  }
  std::vector<Layers> take() { return std::move(made_); }

 private:
  [[nodiscard]] std::vector<OfTree> members_of(const LayerBudget& budget, std::size_t group) {
    std::vector<OfTree> members;
    for (std::size_t tree = 0; tree < trees_.size(); ++tree) {
      if (budget.group_of[tree] != group) continue;
      for (const NodeNumber node : next_[tree]) members.push_back({tree, node});
    }
    return members;
  }
  // Keeps the hottest of these, in the order in which they stand.
  void keep_hottest(const std::vector<OfTree>& nodes, std::size_t count) {
    if (nodes.size() <= count) return;
    std::vector<std::size_t> order(nodes.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto cut = order.begin() + static_cast<std::ptrdiff_t>(count);
    const auto accesses = [&](std::size_t at) {
      return trees_[nodes[at].tree].accesses(nodes[at].node);
    };
    std::nth_element(order.begin(), cut, order.end(), [&](std::size_t a, std::size_t b) {
      const auto of_a = accesses(a);
      const auto of_b = accesses(b);
      return of_a != of_b ? of_a > of_b : a < b;
    });
    order.erase(cut, order.end());
    std::ranges::sort(order);
    for (const OfTree& each : nodes) next_[each.tree].clear();
    for (const std::size_t at : order) next_[nodes[at].tree].push_back(nodes[at].node);
  }

  std::span<const TreeImage> trees_;
  std::vector<std::vector<NodeNumber>> next_;  // of each tree: what the next layer may have
  std::vector<Layers> made_;
};

}  // namespace

std::vector<Layers> choose_node_sets(std::span<const TreeImage> trees,
                                     std::span<const FatRoot> roots,
                                     std::span<const LayerBudget> budgets) {
  Chooser chooser(trees, roots);
  for (const LayerBudget& budget : budgets) chooser.add(budget);
  return chooser.take();
}

}  // namespace espalier::dataplane

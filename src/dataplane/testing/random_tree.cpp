// SPDX-License-Identifier: Apache-2.0
#include "dataplane/testing/random_tree.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace espalier::dataplane {
namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

class Grower {
 public:
  Grower(base::Random& random, const TreeShape& shape) : random_(random), shape_(shape) {}

  TreeImage run() {
    tree_.set_root(grow(shape_.levels, 0, kLargest));
    return std::move(tree_);
  }

 private:
  // A node of the keys from low to high, both included.
  NodeNumber grow(std::size_t levels, std::uint64_t low, std::uint64_t high) {
    const std::uint64_t address = ++addresses_ * 64;
    if (levels == 0 || random_.chance(0.1)) {
      return tree_.add_leaf(address, random_.below(shape_.accesses_max));
    }
    const std::vector<std::uint64_t> separators = draw_separators(low, high);
    std::vector<NodeNumber> children;
    std::uint64_t accesses = 0;
    for (std::size_t i = 0; i <= separators.size(); ++i) {
      if (i != 0 && random_.chance(shape_.here)) {
        children.push_back(kHere);
        continue;
      }
      const std::uint64_t begin = i == 0 ? low : separators[i - 1];
      const std::uint64_t end = i == separators.size() ? high : separators[i] - 1;
      children.push_back(grow(levels - 1, begin, end));
      accesses += tree_.accesses(children.back());
    }
    return tree_.add_node(address, accesses, separators, children);
  }

  // Those within (low, high], some of them side by side or at the ends.
  std::vector<std::uint64_t> draw_separators(std::uint64_t low, std::uint64_t high) {
    std::set<std::uint64_t> drawn;
    const std::size_t wanted = random_.below(shape_.children_max);
    for (std::size_t i = 0; i < wanted && low != high; ++i) {
      std::uint64_t key = random_.between(low + 1, high);
      if (random_.chance(0.2)) key = high;
      if (random_.chance(0.2)) key = low + 1;
      if (random_.chance(0.3) && !drawn.empty() && *drawn.rbegin() != high)
        key = *drawn.rbegin() + 1;
      drawn.insert(key);
    }
    return {drawn.begin(), drawn.end()};
  }

  base::Random& random_;
  TreeShape shape_;
  TreeImage tree_;
  std::uint64_t addresses_ = 0;
};

// What merging nodes of a subtree saves at most, for each number of ranges that it may add.
std::vector<std::uint64_t> savings(const TreeImage& tree, NodeNumber node, std::size_t added_max) {
  std::vector<std::uint64_t> none(added_max + 1, 0);
  const auto children = tree.children(node);
  if (tree.is_leaf(node) || children.size() - 1 > added_max) return none;
  const std::size_t left = added_max - (children.size() - 1);
  std::vector<std::uint64_t> below(left + 1, 0);
  for (const NodeNumber child : children) {
    if (child == kHere) continue;
    const auto of_child = savings(tree, child, left);
    for (std::size_t total = left + 1; total-- != 0;) {
      for (std::size_t part = 0; part <= total; ++part) {
        below[total] = std::max(below[total], below[total - part] + of_child[part]);
      }
    }
  }
  for (std::size_t added = children.size() - 1; added <= added_max; ++added) {
    none[added] = tree.accesses(node) + below[added - (children.size() - 1)];
  }
  return none;
}

}  // namespace

TreeImage random_tree(base::Random& random, const TreeShape& shape) {
  return Grower(random, shape).run();
}

std::vector<NodeNumber> path_of(const TreeImage& tree, std::uint64_t key) {
  std::vector<NodeNumber> path{tree.root()};
  while (!tree.is_leaf(path.back())) {
    const NodeNumber child = tree.child(path.back(), key);
    if (child == kHere) break;
    path.push_back(child);
  }
  return path;
}

std::vector<std::uint64_t> border_keys(const TreeImage& tree, base::Random& random,
                                       std::size_t separators_max) {
  std::vector<std::uint64_t> separators;
  for (NodeNumber node = 0; node < tree.size(); ++node) {
    const auto of = tree.separators(node);
    separators.insert(separators.end(), of.begin(), of.end());
  }
  std::vector<std::uint64_t> keys{0, kLargest};
  const std::size_t count = std::min(separators.size(), separators_max);
  for (std::size_t i = 0; i < count; ++i) {
    std::swap(separators[i], separators[i + random.below(separators.size() - i)]);
    const std::uint64_t separator = separators[i];
    keys.push_back(separator);
    keys.push_back(separator - 1);
    if (separator != kLargest) keys.push_back(separator + 1);
  }
  return keys;
}

std::uint64_t saved_reads(const TreeImage& tree, const std::vector<NodeNumber>& merged) {
  std::uint64_t saved = 0;
  for (const NodeNumber node : merged) saved += tree.accesses(node);
  return saved;
}

std::uint64_t most_saved_reads(const TreeImage& tree, std::size_t ranges_max) {
  return std::ranges::max(savings(tree, tree.root(), ranges_max - 1));
}

}  // namespace espalier::dataplane

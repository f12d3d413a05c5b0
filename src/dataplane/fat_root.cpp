// SPDX-License-Identifier: Apache-2.0
#include "dataplane/fat_root.hpp"

#include <queue>
#include <utility>

#include "base/assert.hpp"

namespace espalier::dataplane {
namespace {

// What decides which node goes first.
enum class Order : std::uint8_t {
  accesses,   // how often it was passed
  per_range,  // the same, for each range that it adds
};

// One that may be merged. Of nodes worth as much as each other the one added first goes first, so
// that the same tree gives the same tables.
struct Candidate {
  double worth;
  std::size_t tree;
  NodeNumber node;
  friend bool operator<(const Candidate& a, const Candidate& b) {
    if (a.worth != b.worth) return a.worth < b.worth;
    return a.tree != b.tree ? a.tree > b.tree : a.node > b.node;
  }
};

class Merger {
 public:
  Merger(std::span<const TreeImage> trees, std::size_t ranges_max, Order order)
      : trees_(trees), ranges_max_(ranges_max), order_(order), made_(trees.size()) {
    for (const TreeImage& tree : trees) is_merged_.emplace_back(tree.size(), false);
  }

  /// Chooses nodes. Returns how many READs that saves.
  std::uint64_t choose() {
    std::uint64_t saved = 0;
    for (std::size_t tree = 0; tree < trees_.size(); ++tree) offer(tree, trees_[tree].root());
    std::size_t ranges = trees_.size();
    while (!queue_.empty() && ranges < ranges_max_) {
      const Candidate best = queue_.top();
      queue_.pop();
      const TreeImage& tree = trees_[best.tree];
      const auto children = tree.children(best.node);
      if (ranges + children.size() - 1 > ranges_max_) continue;
      ranges += children.size() - 1;
      is_merged_[best.tree][best.node] = true;
      saved += tree.accesses(best.node);
      made_[best.tree].merged.push_back(best.node);
      for (const NodeNumber child : children) {
        if (child != kHere) offer(best.tree, child);
      }
    }
    return saved;
  }
  /// The ranges of what was chosen.
  std::vector<FatRoot> write() {
    for (std::size_t tree = 0; tree < trees_.size(); ++tree) write(tree, trees_[tree].root(), 0);
    return std::move(made_);
  }

 private:
  void offer(std::size_t tree, NodeNumber node) {
    const TreeImage& of = trees_[tree];
    if (of.is_leaf(node)) return;
    const auto accesses = static_cast<double>(of.accesses(node));
    const std::size_t adds = of.children(node).size() - 1;
    const bool by_range = order_ == Order::per_range && adds != 0;
    queue_.push({by_range ? accesses / static_cast<double>(adds) : accesses, tree, node});
  }

  // The ranges of a node and of what is merged below it, in order.
  void write(std::size_t tree, NodeNumber node, std::uint64_t low) {
    auto& ranges = made_[tree].ranges;
    if (!is_merged_[tree][node]) {
      ranges.push_back({low, node, false});
      return;
    }
    const auto children = trees_[tree].children(node);
    const auto separators = trees_[tree].separators(node);
    for (std::size_t i = 0; i < children.size(); ++i) {
      const std::uint64_t begin = i == 0 ? low : separators[i - 1];
      if (children[i] == kHere) {
        ranges.push_back({begin, node, true});
      } else {
        write(tree, children[i], begin);
      }
    }
  }

  std::span<const TreeImage> trees_;
  std::size_t ranges_max_;
  Order order_;
  std::vector<std::vector<bool>> is_merged_;
  std::priority_queue<Candidate> queue_;
  std::vector<FatRoot> made_;
};

}  // namespace

FatRoot make_fat_root(const TreeImage& tree, std::size_t ranges_max) {
  return std::move(make_fat_roots({&tree, 1}, ranges_max).front());
}

std::vector<FatRoot> make_fat_roots(std::span<const TreeImage> trees, std::size_t ranges_max) {
  ESPALIER_ASSERT(!trees.empty() && ranges_max >= trees.size());
  for (const TreeImage& tree : trees) ESPALIER_ASSERT(tree.root() < tree.size());
  Merger by_accesses(trees, ranges_max, Order::accesses);
  Merger per_range(trees, ranges_max, Order::per_range);
  const std::uint64_t saved = by_accesses.choose();
  return per_range.choose() > saved ? per_range.write() : by_accesses.write();
}

}  // namespace espalier::dataplane

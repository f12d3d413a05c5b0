// SPDX-License-Identifier: Apache-2.0
#include "dataplane/fat_root.hpp"

#include <queue>

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
  NodeNumber node;
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.worth != b.worth ? a.worth < b.worth : a.node > b.node;
  }
};

class Merger {
 public:
  Merger(const TreeImage& tree, std::size_t ranges_max, Order order)
      : tree_(tree), ranges_max_(ranges_max), order_(order), is_merged_(tree.size(), false) {}

  /// Chooses nodes. Returns how many READs that saves.
  std::uint64_t choose() {
    std::uint64_t saved = 0;
    offer(tree_.root());
    std::size_t ranges = 1;
    while (!queue_.empty() && ranges < ranges_max_) {
      const NodeNumber node = queue_.top().node;
      queue_.pop();
      const auto children = tree_.children(node);
      if (ranges + children.size() - 1 > ranges_max_) continue;
      ranges += children.size() - 1;
      is_merged_[node] = true;
      saved += tree_.accesses(node);
      made_.merged.push_back(node);
      for (const NodeNumber child : children) {
        if (child != kHere) offer(child);
      }
    }
    return saved;
  }
  /// The ranges of what was chosen.
  FatRoot write() {
    write(tree_.root(), 0);
    return std::move(made_);
  }

 private:
  void offer(NodeNumber node) {
    if (tree_.is_leaf(node)) return;
    const auto accesses = static_cast<double>(tree_.accesses(node));
    const std::size_t adds = tree_.children(node).size() - 1;
    const bool by_range = order_ == Order::per_range && adds != 0;
    queue_.push({by_range ? accesses / static_cast<double>(adds) : accesses, node});
  }

  // The ranges of a node and of what is merged below it, in order.
  void write(NodeNumber node, std::uint64_t low) {
    if (!is_merged_[node]) {
      made_.ranges.push_back({low, node, false});
      return;
    }
    const auto children = tree_.children(node);
    const auto separators = tree_.separators(node);
    for (std::size_t i = 0; i < children.size(); ++i) {
      const std::uint64_t begin = i == 0 ? low : separators[i - 1];
      if (children[i] == kHere) {
        made_.ranges.push_back({begin, node, true});
      } else {
        write(children[i], begin);
      }
    }
  }

  const TreeImage& tree_;
  std::size_t ranges_max_;
  Order order_;
  std::vector<bool> is_merged_;
  std::priority_queue<Candidate> queue_;
  FatRoot made_;
};

}  // namespace

FatRoot make_fat_root(const TreeImage& tree, std::size_t ranges_max) {
  ESPALIER_ASSERT(ranges_max >= 1 && tree.root() < tree.size());
  Merger by_accesses(tree, ranges_max, Order::accesses);
  Merger per_range(tree, ranges_max, Order::per_range);
  const std::uint64_t saved = by_accesses.choose();
  return per_range.choose() > saved ? per_range.write() : by_accesses.write();
}

}  // namespace espalier::dataplane

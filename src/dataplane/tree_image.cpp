// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tree_image.hpp"

#include <algorithm>
#include <functional>

#include "base/assert.hpp"

namespace espalier::dataplane {

NodeNumber TreeImage::add_leaf(std::uint64_t address, std::uint64_t accesses) {
  nodes_.push_back({address, accesses, 0, 0, 0});
  return static_cast<NodeNumber>(nodes_.size() - 1);
}

NodeNumber TreeImage::add_node(std::uint64_t address, std::uint64_t accesses,
                               std::span<const std::uint64_t> separators,
                               std::span<const NodeNumber> children) {
  ESPALIER_ASSERT(!children.empty() && separators.size() + 1 == children.size());
  ESPALIER_DEBUG_ASSERT(std::ranges::is_sorted(separators, std::less_equal{}));
  for (const NodeNumber child : children) {
    ESPALIER_ASSERT(child == kHere || child < nodes_.size());
  }
  nodes_.push_back({address, accesses, separators_.size(), children_.size(),
                    static_cast<std::uint32_t>(children.size())});
  widest_ = std::max(widest_, children.size());
  separators_.insert(separators_.end(), separators.begin(), separators.end());
  children_.insert(children_.end(), children.begin(), children.end());
  return static_cast<NodeNumber>(nodes_.size() - 1);
}

std::span<const std::uint64_t> TreeImage::separators(NodeNumber node) const {
  const Node& of = nodes_[node];
  if (of.child_count == 0) return {};
  return std::span(separators_).subspan(of.first_separator, of.child_count - 1);
}

std::span<const NodeNumber> TreeImage::children(NodeNumber node) const {
  const Node& of = nodes_[node];
  return std::span(children_).subspan(of.first_child, of.child_count);
}

NodeNumber TreeImage::child(NodeNumber node, std::uint64_t key) const {
  const auto of = separators(node);
  return children(node)[static_cast<std::size_t>(std::ranges::upper_bound(of, key) - of.begin())];
}

namespace {

// Cuts the nodes of one tree, children first, so that those of the new tree are there before their
// parents are added.
class Cutter {
 public:
  Cutter(const TreeImage& from, std::size_t width) : from_(from), width_(width) {}

  TreeImage run() {
    std::vector<NodeNumber> made(from_.size(), kHere);
    for (NodeNumber node = 0; node < from_.size(); ++node) made[node] = copy(node, made);
    if (from_.size() != 0) into_.set_root(made[from_.root()]);
    return std::move(into_);
  }

 private:
  NodeNumber copy(NodeNumber node, const std::vector<NodeNumber>& made) {
    if (from_.is_leaf(node)) return into_.add_leaf(from_.address(node), from_.accesses(node));
    const auto separators = from_.separators(node);
    separators_.assign(separators.begin(), separators.end());
    children_.clear();
    for (const NodeNumber child : from_.children(node)) {
      children_.push_back(child == kHere ? kHere : made[child]);
    }
    while (children_.size() > width_) gather(from_.address(node));
    return into_.add_node(from_.address(node), from_.accesses(node), separators_, children_);
  }

  // Puts groups of children under pieces, all groups as long as each other or one shorter.
  void gather(std::uint64_t address) {
    const std::size_t count = (children_.size() + width_ - 1) / width_;
    std::vector<NodeNumber> pieces;
    std::vector<std::uint64_t> between;
    std::size_t begin = 0;
    for (std::size_t piece = 0; piece < count; ++piece) {
      const std::size_t end = children_.size() * (piece + 1) / count;
      const auto of = std::span(children_).subspan(begin, end - begin);
      std::uint64_t accesses = 0;
      for (const NodeNumber child : of) accesses += child == kHere ? 0 : into_.accesses(child);
      if (begin != 0) between.push_back(separators_[begin - 1]);
      pieces.push_back(into_.add_node(address, accesses,
                                      std::span(separators_).subspan(begin, end - begin - 1), of));
      begin = end;
    }
    children_ = std::move(pieces);
    separators_ = std::move(between);
  }

  const TreeImage& from_;
  std::size_t width_;
  TreeImage into_;
  std::vector<std::uint64_t> separators_;
  std::vector<NodeNumber> children_;
};

}  // namespace

TreeImage cut_wide_nodes(const TreeImage& tree, std::size_t width) {
  ESPALIER_ASSERT(width >= 2);
  return Cutter(tree, width).run();
}

}  // namespace espalier::dataplane

// SPDX-License-Identifier: Apache-2.0
// A tree as the table compiler sees it: keys are numbers of 64 bits, a node has an address that a
// READ can go to, a count of accesses, and the numbers that lead to each child.
//
//   separators   s0 < s1 < ... < s(n-2)          n - 1 of them
//   children     c0   c1   ...   c(n-1)          n of them; c(i) has s(i-1) <= key < s(i)
//
// A child may be kHere: numbers that do not determine their child (keys that are longer than a
// number and alike in it) stay at the node itself, which sees the whole key (key_number.hpp). A
// node without children is a leaf.
//
// Thread: one at a time; const functions from any while none changes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace espalier::dataplane {

/// A node of a TreeImage, by its place in the order of adding.
using NodeNumber = std::uint32_t;
/// In the place of a child: the node itself.
inline constexpr NodeNumber kHere = 0xFFFF'FFFF;

class TreeImage {
 public:
  /// Adds a leaf, or a node of which no child is known. Returns its number.
  NodeNumber add_leaf(std::uint64_t address, std::uint64_t accesses);
  /// Adds a node above others. Requires: one separator less than children, separators ascending,
  /// each child is kHere or was added before. Returns its number.
  NodeNumber add_node(std::uint64_t address, std::uint64_t accesses,
                      std::span<const std::uint64_t> separators,
                      std::span<const NodeNumber> children);
  void set_root(NodeNumber root) { root_ = root; }
  void set_address(NodeNumber node, std::uint64_t address) { nodes_[node].address = address; }

  [[nodiscard]] NodeNumber root() const { return root_; }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  /// The most children that a node has.
  [[nodiscard]] std::size_t widest() const { return widest_; }
  [[nodiscard]] std::uint64_t address(NodeNumber node) const { return nodes_[node].address; }
  [[nodiscard]] std::uint64_t accesses(NodeNumber node) const { return nodes_[node].accesses; }
  [[nodiscard]] std::span<const std::uint64_t> separators(NodeNumber node) const;
  [[nodiscard]] std::span<const NodeNumber> children(NodeNumber node) const;
  [[nodiscard]] bool is_leaf(NodeNumber node) const { return nodes_[node].child_count == 0; }
  /// The child for a key, or kHere. Requires: the node is no leaf. Cost: a binary search.
  [[nodiscard]] NodeNumber child(NodeNumber node, std::uint64_t key) const;

 private:
  struct Node {
    std::uint64_t address;
    std::uint64_t accesses;
    std::uint64_t first_separator;
    std::uint64_t first_child;
    std::uint32_t child_count;
  };

  std::vector<Node> nodes_;
  std::vector<std::uint64_t> separators_;
  std::vector<NodeNumber> children_;
  NodeNumber root_ = 0;
  std::size_t widest_ = 0;
};

/// The same tree with no node wider than `width` children: a wider one becomes several pieces, and
/// pieces above them where needed, all with the wide node's address. So a lookup that ends at a
/// piece reads the node that it was cut from, and hot parts of a wide node can be in tables without
/// the rest of it. A piece was passed as often as its children, the uppermost as its node.
/// Requires: width >= 2. Cost: linear.
[[nodiscard]] TreeImage cut_wide_nodes(const TreeImage& tree, std::size_t width);

}  // namespace espalier::dataplane

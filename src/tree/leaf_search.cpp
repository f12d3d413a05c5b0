// SPDX-License-Identifier: Apache-2.0
#include "tree/leaf_search.hpp"

namespace espalier::tree {
namespace {

// The last child in [low, high) whose separator is <= key, or low - 1.
std::uint32_t last_at_most(const NodeView& node, const SearchKey& key, std::uint32_t low,
                           std::uint32_t high) {
  while (low < high) {
    const std::uint32_t middle = (low + high) / 2;
    if (compare_keys(node.separator(middle), key.view()) <= 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == 0 ? 0 : low - 1;
}

}  // namespace

std::uint32_t choose_child(const NodeView& node, const SearchKey& key, GroupChoice choice,
                           const SearchKit& kit) {
  const auto head =
      static_cast<std::uint32_t>(node.head_map()(key.head_after(node.prefix_bytes())) >> 32);
  const std::uint32_t children = node.children();
  if (children == 0) return 0;
  // Unused heads are all ones; they are ranked only by a key whose head is all ones too.
  const std::uint32_t first = choice.first * wire::kGroupChildren;
  const Rank in_first = kit.rank32(node.bytes() + node.group_offset(choice.first), head);
  Rank in_last = in_first;
  std::uint32_t last = first;
  if (choice.last != choice.first) [[unlikely]] {
    last = choice.last * wire::kGroupChildren;
    in_last = kit.rank32(node.bytes() + node.group_offset(choice.last), head);
  }
  std::uint32_t below = first + in_first.below;
  std::uint32_t at_most = last + in_last.below_or_equal;
  if (at_most > children) at_most = children;
  if (below > children) below = children;
  if (below != at_most) [[unlikely]] return last_at_most(node, key, below, at_most);
  return below == 0 ? 0 : below - 1;
}

std::uint32_t choose_child_descending(const NodeView& node, const SearchKey& key) {
  const std::uint32_t children = node.children();
  if (children == 0) return 0;
  if (key.bytes() == 0) return children - 1;
  std::uint32_t low = 1;  // child 0 begins below every key that the node covers
  std::uint32_t high = children;
  while (low < high) {
    const std::uint32_t middle = (low + high) / 2;
    if (compare_keys(node.separator(middle), key.view()) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low - 1;
}

}  // namespace espalier::tree

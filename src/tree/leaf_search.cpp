// SPDX-License-Identifier: Apache-2.0
#include "tree/leaf_search.hpp"

namespace espalier::tree {

std::uint32_t choose_among_equal(const NodeView& node, const SearchKey& key, std::uint32_t low,
                                 std::uint32_t high) {
  // Unused heads are all ones, so a key whose head is all ones counts them too.
  const std::uint32_t children = node.children();
  if (high > children) high = children;
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

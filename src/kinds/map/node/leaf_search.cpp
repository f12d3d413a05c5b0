// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/node/leaf_search.hpp"

#include <algorithm>

namespace espalier::tree {

void resolve_tie(const NodeView& leaf, const SearchKey& key, LeafProbe& probe) {
  std::uint32_t low = probe.rank.below;  // earlier chunks begin below the key
  std::uint32_t high = probe.rank.below_or_equal;
  while (low < high) {
    const std::uint32_t middle = (low + high) / 2;
    std::uint32_t chunk = middle;
    while (chunk < high && leaf.chunk_start(chunk) == 0) ++chunk;
    const bool below = chunk < high &&
                       compare_keys(leaf.sorted_item(leaf.chunk_start(chunk)).key, key.view()) <= 0;
    if (below) {
      low = chunk + 1;
    } else {
      high = middle;
    }
  }
  while (low > 0 && leaf.chunk_start(low - 1) == 0) --low;
  probe.tied = false;
  if (low == 0) {
    probe.begin = probe.end = leaf.geometry().sorted_begin;
  } else {
    probe.chunk = low - 1;
    probe.begin = leaf.chunk_start(probe.chunk);
    probe.end = leaf.chunk_end(probe.chunk);
  }
}

std::uint32_t choose_among_equal(const NodeView& node, const SearchKey& key, std::uint32_t equal,
                                 const ChildRange& range) {
  return choose_among_equal(node.children(), key, equal, range,
                            [&](std::uint32_t child) { return node.separator(child); });
}

std::uint32_t choose_below_equal(const NodeView& node, const SearchKey& key, std::uint32_t equal,
                                 const ChildRange& range) {
  std::uint32_t low = range.below;
  std::uint32_t high = std::min(range.at_most, node.children());
  while (low < high) {
    const std::uint32_t middle = (low + high) / 2;
    if (compare_keys(node.separator(middle), key.view(), equal) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == 0 ? 0 : low - 1;
}

}  // namespace espalier::tree

// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks: trees of one shape.
//
// Thread: one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/tree_image.hpp"

namespace espalier::dataplane {

/// A tree with `levels` of nodes with `fanout` children each, above leaves for the keys 0, step,
/// 2 step ...; the last of a level may have fewer. All were passed as `accesses` of the leaves say.
/// Requires: at most fanout^levels leaves, and some.
[[nodiscard]] inline TreeImage even_tree(std::size_t levels, std::size_t fanout, std::uint64_t step,
                                         const std::vector<std::uint64_t>& accesses) {
  TreeImage tree;
  std::vector<NodeNumber> row;
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    row.push_back(tree.add_leaf((i + 1) * 64, accesses[i]));
  }
  std::uint64_t span = step;
  std::uint64_t address = accesses.size() * 64;
  for (std::size_t level = 0; level < levels; ++level) {
    std::vector<NodeNumber> above;
    for (std::size_t begin = 0; begin < row.size(); begin += fanout) {
      const std::size_t end = std::min(begin + fanout, row.size());
      const auto children = std::span(row).subspan(begin, end - begin);
      std::vector<std::uint64_t> separators;
      std::uint64_t passed = 0;
      for (std::size_t i = begin; i < end; ++i) {
        if (i != begin) separators.push_back(i * span);
        passed += tree.accesses(row[i]);
      }
      address += 64;
      above.push_back(tree.add_node(address, passed, separators, children));
    }
    row = std::move(above);
    span *= fanout;
  }
  tree.set_root(row.front());
  return tree;
}

}  // namespace espalier::dataplane

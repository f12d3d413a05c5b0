// SPDX-License-Identifier: Apache-2.0
#include "dataplane/compiler.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "dataplane/fat_root.hpp"

namespace espalier::dataplane {
namespace {

// Where each node of a set lies, by its number in the tree.
using Places = std::vector<std::uint32_t>;

Way way_to(const TreeImage& tree, NodeNumber node, const Places& places) {
  return {tree.address(node), places[node]};
}

SetNode write_node(const TreeImage& tree, NodeNumber node, const Places& places) {
  const auto children = tree.children(node);
  const auto separators = tree.separators(node);
  SetNode made;
  made.way_count = static_cast<std::uint32_t>(children.size());
  made.pivots.fill(std::numeric_limits<std::uint64_t>::max());
  std::ranges::copy(separators, made.pivots.begin());
  for (std::size_t i = 0; i < kWaysMax; ++i) {
    const NodeNumber child = children[std::min(i, children.size() - 1)];
    made.ways[i] = child == kHere ? Way{tree.address(node), kNoNode} : way_to(tree, child, places);
  }
  return made;
}

}  // namespace

namespace {

Compiled write_tables(const TreeImage& tree, const FatRoot& root, const Layers& sets) {
  // A node has one parent, so it is in one set at most, and is led to from the set before.
  Places places(tree.size(), kNoNode);
  for (const auto& set : sets) {
    for (std::uint32_t i = 0; i < set.size(); ++i) places[set[i]] = i;
  }
  Compiled made;
  made.merged = root.merged.size();
  std::vector<std::uint64_t> lows;
  lows.reserve(root.ranges.size());
  for (const FatRange& range : root.ranges) {
    lows.push_back(range.low);
    made.tables.ways.push_back(range.here ? Way{tree.address(range.node), kNoNode}
                                          : way_to(tree, range.node, places));
  }
  made.tables.root = make_range_tables(lows);
  for (const auto& set : sets) {
    NodeSet& into = made.tables.sets.emplace_back();
    into.reserve(set.size());
    for (const NodeNumber node : set) into.push_back(write_node(tree, node, places));
  }
  ESPALIER_DEBUG_ASSERT(check(made.tables));
  return made;
}

}  // namespace

Compiled compile(const TreeImage& tree, const TableLimits& limits) {
  ForestLimits forest{.ranges = limits.ranges, .layers = {}, .ways = limits.ways};
  for (std::size_t set = 0; set < limits.sets; ++set) {
    forest.layers.push_back({{0}, {limits.nodes_in(set)}});
  }
  return std::move(compile({&tree, 1}, forest).front());
}

std::vector<Compiled> compile(std::span<const TreeImage> trees, const ForestLimits& limits) {
  ESPALIER_ASSERT(limits.ways >= 2 && limits.ways <= kWaysMax && limits.ranges >= trees.size());
  const auto is_wide = [&](const TreeImage& tree) { return tree.widest() > limits.ways; };
  if (std::ranges::any_of(trees, is_wide)) {
    std::vector<TreeImage> narrow;
    for (const TreeImage& tree : trees) narrow.push_back(cut_wide_nodes(tree, limits.ways));
    return compile(narrow, limits);
  }
  const std::vector<FatRoot> roots = make_fat_roots(trees, limits.ranges);
  const std::vector<Layers> sets = choose_node_sets(trees, roots, limits.layers);
  std::vector<Compiled> made;
  for (std::size_t tree = 0; tree < trees.size(); ++tree) {
    made.push_back(write_tables(trees[tree], roots[tree], sets[tree]));
  }
  return made;
}

std::vector<EntryPlace> places_of(const IndexTables& tables, std::uint64_t address) {
  std::vector<EntryPlace> places;
  for (std::uint32_t i = 0; i < tables.ways.size(); ++i) {
    if (tables.ways[i].address == address) places.push_back({EntryPlace::kRoot, i, 0});
  }
  for (std::uint32_t set = 0; set < tables.sets.size(); ++set) {
    for (std::uint32_t node = 0; node < tables.sets[set].size(); ++node) {
      const SetNode& of = tables.sets[set][node];
      for (std::uint32_t way = 0; way < of.way_count; ++way) {
        if (of.ways[way].address == address) places.push_back({set, node, way});
      }
    }
  }
  return places;
}

void set_address(IndexTables& tables, const EntryPlace& place, std::uint64_t address) {
  if (place.set == EntryPlace::kRoot) {
    tables.ways[place.node].address = address;
    return;
  }
  SetNode& node = tables.sets[place.set][place.node];
  ESPALIER_ASSERT(place.way < node.way_count);
  node.ways[place.way].address = address;
  if (place.way + 1 != node.way_count) return;
  std::fill(node.ways.begin() + place.way, node.ways.end(), node.ways[place.way]);
}

}  // namespace espalier::dataplane

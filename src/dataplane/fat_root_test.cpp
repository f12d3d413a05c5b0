// SPDX-License-Identifier: Apache-2.0
#include "dataplane/fat_root.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "dataplane/testing/random_tree.hpp"

namespace espalier::dataplane {
namespace {

TEST(FatRoot, OneRangeIsTheRootItself) {
  const TreeImage tree = even_tree(2, 4, 10, std::vector<std::uint64_t>(16, 1));
  const FatRoot root = make_fat_root(tree, 3);
  EXPECT_TRUE(root.merged.empty());
  EXPECT_EQ(root.ranges, (std::vector<FatRange>{{0, tree.root(), false}}));
}

TEST(FatRoot, HotNodesGoFirst) {
  std::vector<std::uint64_t> accesses(16, 1);
  accesses[9] = 100;  // below the third child of the root
  const TreeImage tree = even_tree(2, 4, 10, accesses);
  const FatRoot root = make_fat_root(tree, 7);
  EXPECT_EQ(root.merged, (std::vector<NodeNumber>{tree.root(), tree.children(tree.root())[2]}));
  ASSERT_EQ(root.ranges.size(), 7u);
  EXPECT_EQ(root.ranges[2].low, 80u);
  EXPECT_EQ(root.ranges[3].low, 90u);
  EXPECT_TRUE(tree.is_leaf(root.ranges[3].node));
  EXPECT_EQ(root.ranges[6].low, 120u);
}

TEST(FatRoot, WhatDoesNotFitLeavesRoomToOthers) {
  // The hottest child is too wide for what is left, the next one is not.
  TreeImage tree;
  std::vector<NodeNumber> wide, narrow;
  std::vector<std::uint64_t> separators;
  for (std::uint64_t i = 0; i < 10; ++i) {
    wide.push_back(tree.add_leaf(i + 1, 10));
    if (i != 0) separators.push_back(i);
  }
  const NodeNumber hot = tree.add_node(100, 100, separators, wide);
  narrow.push_back(tree.add_leaf(20, 1));
  narrow.push_back(tree.add_leaf(21, 1));
  const NodeNumber cold = tree.add_node(101, 2, std::vector<std::uint64_t>{60}, narrow);
  tree.set_root(tree.add_node(102, 102, std::vector<std::uint64_t>{50}, std::vector{hot, cold}));
  const FatRoot root = make_fat_root(tree, 4);
  EXPECT_EQ(root.merged, (std::vector<NodeNumber>{tree.root(), cold}));
  EXPECT_EQ(root.ranges.size(), 3u);
}

TEST(FatRoot, RangesCoverAllKeysOnce) {
  base::Random random(base::seed_from_environment(1));
  for (int round = 0; round < 100; ++round) {
    const TreeImage tree = random_tree(random, {.levels = 4, .children_max = 6, .here = 0.1});
    const std::size_t ranges_max = 1 + random.below(60);
    const FatRoot root = make_fat_root(tree, ranges_max);
    ASSERT_LE(root.ranges.size(), ranges_max);
    ASSERT_EQ(root.ranges.front().low, 0u);
    for (std::size_t i = 1; i < root.ranges.size(); ++i) {
      ASSERT_LT(root.ranges[i - 1].low, root.ranges[i].low);
    }
    for (const std::uint64_t key : border_keys(tree, random)) {
      const auto behind = std::ranges::upper_bound(root.ranges, key, {}, &FatRange::low);
      const FatRange& range = *(behind - 1);
      const auto path = path_of(tree, key);
      const auto at = std::ranges::find(path, range.node);
      ASSERT_NE(at, path.end()) << "no node of the key's own path";
      // All above it are merged, and it is not, unless the key stays at it.
      for (auto above = path.begin(); above != at; ++above) {
        ASSERT_NE(std::ranges::find(root.merged, *above), root.merged.end());
      }
      ASSERT_EQ(std::ranges::count(root.merged, range.node), range.here ? 1 : 0);
    }
  }
}

// Where all nodes are of one width the greedy choice is the best one; else it may miss some. How
// much, on trees of up to 12 nodes, docs/design/index_in_network.md states.
TEST(FatRoot, GreedyIsTheBestChoiceWhereNodesAreAlike) {
  base::Random random(base::seed_from_environment(2));
  for (int round = 0; round < 100; ++round) {
    std::vector<std::uint64_t> accesses(27);
    for (std::uint64_t& of : accesses) of = random.below(100);
    const TreeImage tree = even_tree(3, 3, 10, accesses);
    for (std::size_t ranges = 1; ranges <= 27; ++ranges) {
      ASSERT_EQ(saved_reads(tree, make_fat_root(tree, ranges).merged),
                most_saved_reads(tree, ranges));
    }
  }
}

TEST(FatRoot, GreedyIsNearTheBestChoiceElsewhere) {
  base::Random random(base::seed_from_environment(3));
  double worst = 1;
  double sum = 0;
  std::size_t count = 0;
  for (int round = 0; round < 1000; ++round) {
    const TreeImage tree = random_tree(random, {.levels = 3, .children_max = 5});
    std::size_t nodes = 0;
    for (NodeNumber node = 0; node < tree.size(); ++node) nodes += tree.is_leaf(node) ? 0 : 1;
    if (nodes > 12) continue;
    for (std::size_t ranges = 2; ranges <= 16; ++ranges) {
      const std::uint64_t best = most_saved_reads(tree, ranges);
      const std::uint64_t greedy = saved_reads(tree, make_fat_root(tree, ranges).merged);
      ASSERT_LE(greedy, best);
      if (best == 0) continue;
      const double share = static_cast<double>(greedy) / static_cast<double>(best);
      worst = std::min(worst, share);
      sum += share;
      ++count;
    }
  }
  ASSERT_GT(count, 1000u);
  RecordProperty("worst_share", std::to_string(worst));
  RecordProperty("mean_share", std::to_string(sum / static_cast<double>(count)));
  std::printf("greedy saves %.4f of the best choice on average, %.4f at worst, of %zu cases\n",
              sum / static_cast<double>(count), worst, count);
  EXPECT_GT(sum / static_cast<double>(count), 0.95);
}

}  // namespace
}  // namespace espalier::dataplane

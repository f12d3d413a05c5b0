// SPDX-License-Identifier: Apache-2.0
#include "dataplane/retarget.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.hpp"
#include "dataplane/compiler.hpp"
#include "dataplane/hit_share.hpp"
#include "dataplane/table_changes.hpp"
#include "dataplane/testing/random_tree.hpp"

namespace espalier::dataplane {
namespace {

constexpr TableLimits kKeptLimits{.ranges = 40, .sets = 3, .nodes_per_set = 300};

TEST(Retarget, OfTheSameTreeNothingChanges) {
  base::Random random(base::seed_from_environment(1));
  for (int round = 0; round < 50; ++round) {
    const TreeImage tree = random_tree(random, {.levels = 4, .children_max = 6});
    const IndexTables tables = compile(tree, kKeptLimits).tables;
    for (const std::uint64_t key : border_keys(tree, random, 40)) {
      ASSERT_EQ(find(retargeted(tables, tree), key), find(tables, key));
    }
  }
}

// Of any other tree: each lookup ends on the way of its number, and the shape is as it was.
TEST(Retarget, EveryLookupEndsOnTheWayOfItsNumberRandom) {
  base::Random random(base::seed_from_environment(2));
  for (int round = 0; round < 100; ++round) {
    const TreeShape shape{.levels = 4, .children_max = 6, .here = 0.05};
    const IndexTables before = compile(random_tree(random, shape), kKeptLimits).tables;
    const TreeImage tree = random_tree(random, shape);
    const IndexTables after = retargeted(before, tree);
    ASSERT_TRUE(check(after));
    ASSERT_TRUE(changes_between(before, after, {7}));
    for (const std::uint64_t key : border_keys(tree, random, 40)) {
      const auto path = path_of(tree, key);
      const std::uint64_t found = find(after, key).address;
      ASSERT_TRUE(
          std::ranges::any_of(path, [&](NodeNumber node) { return tree.address(node) == found; }));
    }
  }
}

// Leaves below a root, of which one was split: its numbers go to the root, all others on to leaves.
TEST(Retarget, WhatWasSplitIsReadFromTheNodeAbove) {
  const auto tree_of = [](std::vector<std::uint64_t> separators, std::uint64_t root) {
    TreeImage tree;
    std::vector<NodeNumber> leaves{tree.add_leaf(100, 1)};
    for (const std::uint64_t low : separators) leaves.push_back(tree.add_leaf(100 + low, 1));
    tree.set_root(tree.add_node(root, leaves.size(), separators, leaves));
    return tree;
  };
  const IndexTables before = compile(tree_of({10, 20, 30}, 1), {.ranges = 4, .sets = 0}).tables;
  const TreeImage now = tree_of({10, 15, 20, 30}, 2);
  const IndexTables after = retargeted(before, now);
  EXPECT_EQ(find(after, 9).address, 100u);
  EXPECT_EQ(find(after, 10).address, 2u);
  EXPECT_EQ(find(after, 19).address, 2u);
  EXPECT_EQ(find(after, 20).address, 120u);
  EXPECT_EQ(changes_between(before, after, {7})->size(), 1u);
  EXPECT_DOUBLE_EQ(reads_left(now, after), 2.0 / 5);
  EXPECT_DOUBLE_EQ(reads_left(now, compile(now, {.ranges = 5, .sets = 0}).tables), 0);
  EXPECT_DOUBLE_EQ(reads_left(now, compile(now, {.ranges = 1, .sets = 0}).tables), 1);
}

}  // namespace
}  // namespace espalier::dataplane

// SPDX-License-Identifier: Apache-2.0
#include "dataplane/compiler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "dataplane/testing/random_tree.hpp"

namespace espalier::dataplane {
namespace {

// The place of what was found on the way to a key: 0 is the root.
std::size_t depth_of(const TreeImage& tree, const std::vector<NodeNumber>& path,
                     const Found& found) {
  const auto at = std::ranges::find(path, found.address,
                                    [&tree](NodeNumber node) { return tree.address(node); });
  return static_cast<std::size_t>(at - path.begin());
}

void check_lookups(const TreeImage& tree, const TableLimits& limits, base::Random& random) {
  const Compiled compiled = compile(tree, limits);
  ASSERT_TRUE(check(compiled.tables));
  ASSERT_LE(compiled.tables.ways.size(), limits.ranges);
  ASSERT_LE(compiled.tables.sets.size(), limits.sets);
  for (std::size_t i = 0; i < compiled.tables.sets.size(); ++i) {
    ASSERT_LE(compiled.tables.sets[i].size(), limits.nodes_in(i));
  }
  for (const std::uint64_t key : border_keys(tree, random)) {
    const auto path = path_of(tree, key);
    const Found found = find(compiled.tables, key);
    ASSERT_LT(depth_of(tree, path, found), path.size()) << "no node of the way to " << key;
  }
}

TEST(IndexCompiler, EveryLookupEndsOnTheWayOfItsKeyRandom) {
  base::Random random(base::seed_from_environment(1));
  for (int round = 0; round < 200; ++round) {
    const std::size_t levels = 1 + random.below(5);
    const std::size_t children_max = 2 + random.below(levels < 3 ? 60 : 10);
    const TreeImage tree =
        random_tree(random, {.levels = levels, .children_max = children_max, .here = 0.1});
    TableLimits limits{.ranges = 1 + random.below(100),
                       .sets = random.below(4),
                       .nodes_per_set = 1 + random.below(50),
                       .ways = 2 + random.below(15)};
    limits.nodes_of_set[random.below(4)] = random.below(50);
    check_lookups(tree, limits, random);
    if (testing::Test::HasFatalFailure()) FAIL() << "round " << round;
  }
}

// Tables with room for all lead each key to its leaf.
TEST(IndexCompiler, ATreeThatFitsIsWalkedToItsLeaves) {
  const TreeImage tree = even_tree(3, 12, 1000, std::vector<std::uint64_t>(12 * 12 * 12, 1));
  const Compiled compiled = compile(tree, {.ranges = 12, .sets = 2, .nodes_per_set = 144});
  EXPECT_EQ(compiled.merged, 1u);
  for (std::uint64_t i = 0; i < 12 * 12 * 12; ++i) {
    EXPECT_EQ(find(compiled.tables, i * 1000), (Found{(i + 1) * 64, 2}));  // equal to a separator
    EXPECT_EQ(find(compiled.tables, i * 1000 + 999), (Found{(i + 1) * 64, 2}));
  }
  EXPECT_EQ(find(compiled.tables, ~std::uint64_t{0}), (Found{12 * 12 * 12 * 64, 2}));
}

TEST(IndexCompiler, EachLayerHasItsBudget) {
  const TreeImage tree = even_tree(3, 12, 1000, std::vector<std::uint64_t>(12 * 12 * 12, 1));
  const auto sizes = [&tree](const TableLimits& limits) {
    std::vector<std::size_t> of;
    for (const NodeSet& set : compile(tree, limits).tables.sets) of.push_back(set.size());
    return of;
  };
  using Sizes = std::vector<std::size_t>;
  EXPECT_EQ(sizes({.ranges = 12, .sets = 2, .nodes_per_set = 6}), (Sizes{6, 6}));
  EXPECT_EQ(sizes({.ranges = 12, .sets = 2, .nodes_per_set = 6, .nodes_of_set = {5, 30}}),
            (Sizes{5, 30}));
  EXPECT_EQ(sizes({.ranges = 12, .sets = 2, .nodes_per_set = 6, .nodes_of_set = {0, 30}}),
            (Sizes{6, 30}));
}

TEST(IndexCompiler, ATreeOfOneLeafLeadsThere) {
  EXPECT_EQ(find(compile(even_tree(0, 1, 1, {1}), {}).tables, 9).address, 64u);
}

TEST(IndexCompiler, HotNodesAreInTheSets) {
  std::vector<std::uint64_t> accesses(64, 1);
  for (std::size_t i = 32; i < 36; ++i) accesses[i] = 50;
  const TreeImage tree = even_tree(3, 4, 10, accesses);
  const Compiled compiled = compile(tree, {.ranges = 4, .sets = 2, .nodes_per_set = 1});
  EXPECT_EQ(find(compiled.tables, 325), (Found{33 * 64, 2}));
  EXPECT_EQ(find(compiled.tables, 5).sets, 0u);    // another node of the first layer
  EXPECT_EQ(find(compiled.tables, 365).sets, 1u);  // the same, another one of the second
}

TEST(IndexCompiler, AnAddressThatMovesIsChangedWhereItStands) {
  base::Random random(base::seed_from_environment(2));
  for (int round = 0; round < 40; ++round) {
    TreeImage tree = random_tree(random, {.levels = 3, .children_max = 20, .here = 0.1});
    const TableLimits limits{.ranges = 20, .sets = 2, .nodes_per_set = 20};
    IndexTables tables = compile(tree, limits).tables;
    const auto node = static_cast<NodeNumber>(random.below(tree.size()));
    const std::uint64_t moved = 1 << 30;
    for (const EntryPlace& place : places_of(tables, tree.address(node))) {
      set_address(tables, place, moved);
    }
    tree.set_address(node, moved);
    EXPECT_EQ(tables, compile(tree, limits).tables);
    EXPECT_TRUE(check(tables));
  }
}

TEST(IndexTables, WhatLeadsNowhereIsRefused) {
  const TreeImage tree = even_tree(3, 12, 1000, std::vector<std::uint64_t>(12 * 12 * 12, 1));
  const IndexTables good = compile(tree, {.ranges = 140, .sets = 2, .nodes_per_set = 30}).tables;
  ASSERT_TRUE(check(good));
  const auto refused = [&good](auto change) {
    IndexTables bad = good;
    change(bad);
    return !check(bad);
  };
  EXPECT_TRUE(refused([](IndexTables& t) { t.root.preset = 1000; }));
  EXPECT_TRUE(refused([](IndexTables& t) { t.root.bits_per_stage = 0; }));
  EXPECT_TRUE(refused([](IndexTables& t) { t.root.bits_per_stage = 17; }));
  EXPECT_TRUE(refused([](IndexTables& t) { t.root.stages.clear(); }));
  EXPECT_TRUE(refused([](IndexTables& t) { t.root.stages.resize(5); }));
  EXPECT_TRUE(refused([](IndexTables& t) { t.root.stages[0][0].result = 1000; }));
  EXPECT_TRUE(refused([](IndexTables& t) { t.root.stages[0][0].table = 1; }));
  EXPECT_TRUE(refused([](IndexTables& t) { t.root.stages[0].back().next = 7; }));
  EXPECT_TRUE(refused([](IndexTables& t) { std::ranges::reverse(t.root.stages[3]); }));
  EXPECT_TRUE(refused([](IndexTables& t) { t.root.stages[3][0].next = 0; }));
  EXPECT_TRUE(refused([](IndexTables& t) {
    auto& entries = t.root.stages[0];
    const auto leads =
        std::ranges::find_if(entries, [](const RangeEntry& entry) { return entry.next != kDone; });
    ASSERT_NE(leads, entries.end());
    entries.erase(leads + 1, entries.end());
    leads->last = 0xFFFF;
  }));
  EXPECT_TRUE(refused([](IndexTables& t) { t.ways[0].next = 30; }));
  EXPECT_TRUE(refused([](IndexTables& t) { t.ways.clear(); }));
  EXPECT_TRUE(refused([](IndexTables& t) { t.sets.clear(); }));
  EXPECT_TRUE(refused([](IndexTables& t) { t.sets[0][0].way_count = 0; }));
  EXPECT_TRUE(refused([](IndexTables& t) { t.sets[0][0].way_count = 17; }));
  EXPECT_TRUE(
      refused([](IndexTables& t) { std::swap(t.sets[0][0].pivots[0], t.sets[0][0].pivots[1]); }));
  EXPECT_TRUE(refused([](IndexTables& t) { t.sets[0][0].pivots[14] = 5; }));
  EXPECT_TRUE(refused([](IndexTables& t) { t.sets[0][0].ways[15].address = 5; }));
  EXPECT_TRUE(refused([](IndexTables& t) { t.sets.back()[0].ways[0].next = 0; }));
}

}  // namespace
}  // namespace espalier::dataplane

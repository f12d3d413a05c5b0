// SPDX-License-Identifier: Apache-2.0
#include "dataplane/way_tables.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "dataplane/testing/even_tree.hpp"
#include "dataplane/testing/random_tree.hpp"

namespace espalier::dataplane {
namespace {

constexpr MapKeys kWayKeys{7, 8};

/// As a READ goes that passes all parts.
Found find_along(const std::vector<IndexTables>& parts, std::uint64_t key) {
  Found found = find(parts.front(), key);
  for (std::size_t hop = 1; hop < parts.size() && found.next != kNoNode; ++hop) {
    if (parts[hop].sets.empty()) continue;
    const Found below = find_from(parts[hop], found.next, key);
    found = {below.address, found.sets + below.sets, below.next};
  }
  return found;
}

TEST(WayTables, LookupsAlongAWayFindWhatOneSwitchFinds) {
  base::Random random(base::seed_from_environment(1));
  std::size_t cut = 0;
  for (int round = 0; round < 200; ++round) {
    WayBudget way{.ranges = 1 + random.below(20), .hops = {}};
    for (std::size_t left = 1 + random.below(4); left != 0; --left) {
      way.hops.push_back({random.below(3), 1 + random.below(30)});
    }
    const TreeImage tree = random_tree(random, {.levels = 5, .children_max = 6, .here = 0.05});
    IndexTables tables = compile(tree, *limits_of(way)).tables;
    std::vector<IndexTables> parts = cut_tables(tables, way);
    ASSERT_EQ(parts.size(), way.hops.size());
    for (std::size_t hop = 0; hop < parts.size(); ++hop) {
      ASSERT_TRUE((hop != 0 && parts[hop] == IndexTables{}) || check(parts[hop])) << hop;
      cut += parts[hop].beyond != 0 ? 1 : 0;
    }
    // Entries that change, change in the part that has them.
    std::vector<EntryChange> changes;
    for (const NodeNumber node : path_of(tree, random())) {
      for (const EntryPlace& place : places_of(tables, tree.address(node))) {
        changes.push_back({kWayKeys.keyed, place, tree.address(node) + 0x7000'0000});
      }
    }
    const auto changes_of = cut_changes(changes, way);
    for (const EntryChange& change : changes) set_address(tables, change.place, change.address);
    for (std::size_t hop = 0; hop < parts.size(); ++hop) {
      for (const EntryChange& change : changes_of[hop]) {
        set_address(parts[hop], change.place, change.address);
      }
    }
    EXPECT_EQ(parts, cut_tables(tables, way));
    for (const std::uint64_t key : border_keys(tree, random, 50)) {
      ASSERT_EQ(find_along(parts, key), find(tables, key));
    }
  }
  EXPECT_GT(cut, 50u) << "hardly any tables were cut";
}

TEST(WayTables, ProgramsOfAWayComeBackFromTheirTexts) {
  const WayBudget way{.ranges = 3, .hops = {{0, 1}, {1, 40}, {0, 1}, {2, 40}, {1, 1}}};
  const TreeImage tree = even_tree(4, 8, 1000, std::vector<std::uint64_t>(4096, 1));
  const auto programs =
      cut_program(kWayKeys, compile(tree, *limits_of(way)).tables, way, 0xFEED'0001);
  ASSERT_EQ(programs.size(), 5u);
  for (const SwitchProgram& program : programs) {
    const auto again = SwitchProgram::parse(program.text());
    ASSERT_TRUE(again) << again.error().line << again.error().reason;
    EXPECT_EQ(*again, program);
  }
  EXPECT_EQ(programs[2].maps().size(), 0u) << "it has no sets";
  EXPECT_EQ(programs[0].maps()[0].part.generation, 0xFEED'0001u);
  EXPECT_EQ(programs[0].maps()[0].part.hops, programs[1].maps()[0].part.hops + 1);
}

constexpr std::size_t kPairs = 2;  // of nodes, each behind a switch of its own

/// Four nodes behind one switch with the fat roots, two for all of a pair, and one for each.
TopologyBudget four_nodes(base::Random& random) {
  TopologyBudget of{.ranges = 4 + random.below(40), .switches = {{0, 1}}, .ways = {}};
  for (std::size_t pair = 0; pair < kPairs; ++pair) of.switches.push_back({1, random.below(60)});
  for (std::size_t node = 0; node < 4; ++node) {
    of.switches.push_back({2, random.below(40)});
    of.ways.push_back({0, 1 + node / 2, 3 + node});
  }
  return of;
}

TEST(Topology, TablesOfSeveralNodesShareWhatTheirWaysHaveInCommon) {
  base::Random random(base::seed_from_environment(7));
  std::size_t unequal = 0;
  for (int round = 0; round < 100; ++round) {
    const TopologyBudget topology = four_nodes(random);
    std::vector<TreeImage> trees;
    std::vector<MapKeys> keys;
    for (std::uint16_t node = 0; node < 4; ++node) {
      const std::uint64_t most = node == 2 ? 100'000 : 1000;
      trees.push_back(random_tree(
          random, {.levels = 5, .children_max = 6, .here = 0.05, .accesses_max = most}));
      keys.push_back({kWayKeys.keyed, 100u + node, node});
    }
    std::vector<IndexTables> tables;
    for (Compiled& each : compile(trees, *limits_of(topology))) {
      ASSERT_TRUE(check(each.tables));
      tables.push_back(std::move(each.tables));
    }
    std::size_t ranges = 0;
    for (const IndexTables& each : tables) ranges += each.ways.size();
    EXPECT_LE(ranges, topology.ranges);
    unequal += tables[2].ways.size() > tables[0].ways.size() ? 1 : 0;
    const auto programs = cut_program(keys, tables, topology, 5);
    for (std::size_t at = 1; at < programs.size(); ++at) {
      std::vector<std::size_t> nodes(2, 0);
      for (const SwitchMap& map : programs[at].maps()) {
        for (std::size_t set = 0; set < map.tables.sets.size(); ++set) {
          nodes[set] += map.tables.sets[set].size();
        }
      }
      for (const std::size_t of_set : nodes) EXPECT_LE(of_set, topology.switches[at].nodes_per_set);
    }
    for (std::size_t node = 0; node < 4; ++node) {
      const auto parts = cut_tables(tables[node], way_to(topology, node));
      for (const std::uint64_t key : border_keys(trees[node], random, 20)) {
        ASSERT_EQ(find_along(parts, key), find(tables[node], key));
      }
    }
  }
  EXPECT_GT(unequal, 60u) << "the node that is read most has no more ranges than others";
}

TEST(Topology, ChangesGoToTheSwitchesOfTheirNodes) {
  base::Random random(base::seed_from_environment(8));
  const TopologyBudget topology = four_nodes(random);
  const std::vector<EntryChange> changes = {{7, {EntryPlace::kRoot, 0, 0}, 1, 0},
                                            {7, {0, 1, 2}, 2, 1},
                                            {7, {1, 1, 2}, 3, 2},
                                            {7, {2, 1, 2}, 4, 3}};
  const auto parts = cut_changes(changes, topology);
  ASSERT_EQ(parts.size(), topology.switches.size());
  EXPECT_EQ(parts[0], std::vector({changes[0]}));
  EXPECT_EQ(parts[1], (std::vector<EntryChange>{{7, {0, 1, 2}, 2, 1}}));
  EXPECT_EQ(parts[5], (std::vector<EntryChange>{{7, {0, 1, 2}, 3, 2}}));
  EXPECT_EQ(parts[6], (std::vector<EntryChange>{{7, {1, 1, 2}, 4, 3}}));
}

TEST(Topology, OnesThatNoTablesCanBeCutForAreRefused) {
  const auto refused = [](const TopologyBudget& of) {
    const auto limits = limits_of(of);
    return limits ? std::string() : limits.error();
  };
  EXPECT_EQ(refused({}), "there is no way to a node");
  EXPECT_EQ(refused({.ranges = 1, .switches = {{}}, .ways = {{0}, {0}}}),
            "each node takes a range of the fat root at least");
  EXPECT_EQ(refused({.switches = {{}}, .ways = {{}}}), "a way has a switch");
  EXPECT_EQ(refused({.switches = {{}, {}}, .ways = {{0}, {1}}}),
            "ways begin at different switches");
  EXPECT_EQ(refused({.switches = {{}}, .ways = {{0, 1}}}),
            "a way leads through a switch that there is not");
  EXPECT_EQ(refused({.switches = {{}}, .ways = {{0, 0}}}), "a way leads through a switch twice");
  EXPECT_EQ(refused({.switches = {{}, {1, 9}, {1, 9}}, .ways = {{0, 1, 2}, {0, 2}}}),
            "ways come to a switch at different layers");
  EXPECT_EQ(refused({.switches = {{9, 9}}, .ways = {{0}}}),
            "all switches of a way have at most 8 sets together");
  EXPECT_EQ(refused({.switches = {{}, {1, 9}, {2, 9}}, .ways = {{0, 1, 2}, {0, 1}}}), "");
}

TEST(WayTables, BudgetsThatNoWayHasAreRefused) {
  EXPECT_FALSE(limits_of(WayBudget{}));
  EXPECT_FALSE(limits_of({.hops = std::vector<HopBudget>(kHopsMax + 1)}));
  EXPECT_FALSE(limits_of({.hops = {{5, 1}, {4, 1}}}));
  EXPECT_FALSE(limits_of({.hops = {{1, 1}, {~std::size_t{0}, 1}}}));
  const auto limits = limits_of({.ranges = 9, .hops = {{0, 1}, {2, 30}, {1, 400}}});
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits->ranges, 9u);
  EXPECT_EQ(limits->sets, 3u);
  EXPECT_EQ(limits->nodes_in(1), 30u);
  EXPECT_EQ(limits->nodes_in(2), 400u);
}

}  // namespace
}  // namespace espalier::dataplane

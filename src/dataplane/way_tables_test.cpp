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

TEST(WayTables, BudgetsThatNoWayHasAreRefused) {
  EXPECT_FALSE(limits_of({}));
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

// SPDX-License-Identifier: Apache-2.0
#include "dataplane/table_changes.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "dataplane/compiler.hpp"

namespace espalier::dataplane {
namespace {

constexpr std::uint32_t kKey = 77;

// Two levels above leaves; `moved`: the address of each node is another.
IndexTables tables_of(std::uint32_t fanout, std::uint64_t moved) {
  TreeImage image;
  std::vector<NodeNumber> nodes;
  std::vector<std::uint64_t> between;
  std::uint64_t address = 1000 + moved;
  for (std::uint64_t i = 0; i < fanout; ++i) {
    std::vector<NodeNumber> leaves;
    std::vector<std::uint64_t> separators;
    for (std::uint64_t k = 0; k < fanout; ++k) {
      leaves.push_back(image.add_leaf(address++, 1 + k));
      if (k != 0) separators.push_back((i * fanout + k) << 32);
    }
    if (i != 0) between.push_back((i * fanout) << 32);
    nodes.push_back(image.add_node(address++, fanout, separators, leaves));
  }
  image.set_root(image.add_node(address, fanout * fanout, between, nodes));
  return compile(image, {.ranges = fanout, .sets = 2, .nodes_per_set = 64}).tables;
}

TEST(TableChanges, EqualTablesHaveNone) {
  const auto changes = changes_between(tables_of(10, 0), tables_of(10, 0), {kKey});
  ASSERT_TRUE(changes);
  EXPECT_TRUE(changes->empty());
}

TEST(TableChanges, AddressesThatMovedAreAllOfThem) {
  const IndexTables before = tables_of(10, 0);
  const IndexTables after = tables_of(10, 5);
  const auto changes = changes_between(before, after, {kKey});
  ASSERT_TRUE(changes);
  ASSERT_FALSE(changes->empty());
  IndexTables made = before;
  for (const EntryChange& change : *changes) {
    EXPECT_EQ(change.keyed_key, kKey);
    set_address(made, change.place, change.address);
  }
  EXPECT_EQ(made, after);
  EXPECT_EQ(find(made, std::uint64_t{57} << 32), find(after, std::uint64_t{57} << 32));
}

TEST(TableChanges, OneEntryIsToldAlone) {
  const IndexTables before = tables_of(10, 0);
  IndexTables after = before;
  set_address(after, {EntryPlace::kRoot, 3, 0}, 42);
  const auto changes = changes_between(before, after, {kKey});
  ASSERT_TRUE(changes);
  ASSERT_EQ(changes->size(), 1u);
  EXPECT_EQ(changes->front(), (EntryChange{kKey, {EntryPlace::kRoot, 3, 0}, 42}));
}

TEST(TableChanges, AnotherShapeIsToldWhole) {
  EXPECT_FALSE(changes_between(tables_of(10, 0), tables_of(9, 0), {kKey}));
  EXPECT_FALSE(changes_between({}, tables_of(9, 0), {kKey}));
  const IndexTables before = tables_of(10, 0);
  IndexTables after = before;
  ASSERT_FALSE(after.sets.empty());
  after.sets[0][0].pivots[0] ^= 1;
  EXPECT_FALSE(changes_between(before, after, {kKey}));
  after = before;
  after.ways[1].next = kNoNode - 1;
  EXPECT_FALSE(changes_between(before, after, {kKey}));
}

}  // namespace
}  // namespace espalier::dataplane

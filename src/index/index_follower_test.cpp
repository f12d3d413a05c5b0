// SPDX-License-Identifier: Apache-2.0
#include "index/index_follower.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "index/testing/followed_index.hpp"

namespace espalier::place {
namespace {

TEST(IndexFollowing, EntriesOfLeavesThatMoveChangeAlone) {
  base::Random random(base::seed_from_environment(17));
  FollowedIndex index;
  EXPECT_EQ(index.astray(), 0u);
  for (int round = 0; round < 40; ++round) {
    ASSERT_TRUE(index.move_some(random, 60)) << "they were compiled";
    ASSERT_EQ(index.known, index.follower.tables());
    ASSERT_EQ(index.astray(), 0u);
  }
  EXPECT_GT(index.changed, 100u) << "nothing has moved";
  EXPECT_EQ(index.behind, 1u);
  ASSERT_TRUE(index.follower.changes());
  EXPECT_TRUE(index.follower.changes()->empty());
}

TEST(IndexFollowing, AnotherShapeIsToBeRead) {
  FollowedIndex index;
  for (std::uint64_t i = 0; i < 400; ++i)
    index.user.put(FollowedIndex::key_of(i) + "more", "value");
  EXPECT_FALSE(index.take_feed());
  ASSERT_TRUE(index.follower.read(*index.map, index.region));
  EXPECT_FALSE(index.follower.changes());
  index.known = index.follower.tables();
  EXPECT_EQ(index.astray(), 0u);
}

// The items of a leaf that was split are read from the node above it, and nothing else changes.
TEST(IndexFollowing, AFewSplitsAreToldEntryByEntry) {
  FollowedIndex index;
  for (char c = 'a'; c < 'q'; ++c) index.user.put(FollowedIndex::key_of(1500) + c, "value");
  ASSERT_FALSE(index.take_feed()) << "no node was split";
  const dataplane::IndexTables before = index.known;
  ASSERT_TRUE(index.update());
  EXPECT_EQ(index.generations, 0u);
  EXPECT_EQ(index.known, index.follower.tables());
  EXPECT_NE(index.known, before);
  EXPECT_GT(index.astray(), 0u);
  EXPECT_LT(index.astray(), FollowedIndex::kKeys / 50);
}

// The feed reports a leaf at an address where another one is by now: the report is older than the
// tree.
TEST(IndexFollowing, AMoveToWhereAnotherLeafIsHasTheTreeReadAnew) {
  FollowedIndex index;
  const std::string key = FollowedIndex::key_of(10);
  const std::string of_other = FollowedIndex::key_of(2000);
  const auto tree = crawl(*index.map, index.region);
  ASSERT_TRUE(tree);
  const LeafCounts counts = tree->count({{key, key, of_other}});
  ASSERT_EQ(counts.size(), 2u);
  for (const auto& [lid, count] : counts) {
    const std::string& elsewhere = count == 2 ? of_other : key;
    EXPECT_FALSE(index.follower.moved({lid, leaf_ref_of(*index.map, index.context, elsewhere), 1}));
    EXPECT_TRUE(index.follower.moved(
        {lid, leaf_ref_of(*index.map, index.context, count == 2 ? key : of_other), 1}));
  }
  EXPECT_TRUE(index.follower.changes()->empty());
}

// A move between reading and compiling is in the changes, whichever is first.
TEST(IndexFollowing, CountsCompileTheTreeAsItHasMoved) {
  base::Random random(base::seed_from_environment(18));
  FollowedIndex index;
  for (int i = 0; i < 300; ++i) {
    index.user.put(FollowedIndex::key_of(random.below(FollowedIndex::kKeys)), "value");
  }
  EXPECT_GT(index.astray(), 0u);
  ASSERT_TRUE(index.take_feed());
  static_cast<void>(index.follower.changes({{index.map->root, 5}}));
  index.known = index.follower.tables();
  EXPECT_EQ(index.astray(), 0u);
}

}  // namespace
}  // namespace espalier::place

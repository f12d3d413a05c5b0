// SPDX-License-Identifier: Apache-2.0
#include "place/index_follower.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "dataplane/key_number.hpp"
#include "fabric/shared_copy.hpp"
#include "place/testing/leaf_of.hpp"
#include "tree/testing/map_objects.hpp"

namespace espalier::place {
namespace {

constexpr std::uint64_t kBase = std::uint64_t{1} << 50;
constexpr std::uint64_t kKeys = 3000;

std::string key_of(std::uint64_t i) { return "user" + std::to_string(100'000 + i * 7); }

/// A map, a switch's copy of its tables, and who has them follow the map by its feed.
class IndexFollowing : public ::testing::Test {
 protected:
  IndexFollowing() {
    for (std::uint64_t i = 0; i < kKeys; ++i) user_.put(key_of(i), "value");
    // Leaves that were left full are split once they are written again.
    for (std::uint64_t i = 0; i < 4 * kKeys; ++i) user_.put(key_of(i * 7 % kKeys), "value");
    cursor_.emplace(*FeedCursor::create(*map_->table.feed().add_follower(), *map_));
    EXPECT_TRUE(take_feed()) << "the tree was not read yet, and nothing was told";
    EXPECT_TRUE(follower_.read(*map_, region_));
    EXPECT_FALSE(follower_.changes()) << "all is new";
    known_ = follower_.tables();
  }
  /// False: the tree has another shape.
  bool take_feed() {
    bool same_shape = true;
    do {
      fabric::copy_from_shared(landing_.header.data(), map_->at(cursor_->header_offset()),
                               landing_.header.size());
      fabric::copy_from_shared(landing_.entries.data(), map_->at(cursor_->entries_offset()),
                               cursor_->entries_bytes());
      std::vector<MappingChange> changes;
      if (cursor_->take(landing_, changes) == FeedCursor::Came::behind) ++behind_;
      for (const MappingChange& change : changes) {
        same_shape = follower_.moved(change) && same_shape;
      }
    } while (cursor_->waiting() != 0);
    return same_shape;
  }
  /// The leaf of a key, as the host finds it.
  std::uint64_t leaf_of(const std::string& key) {
    return kBase + leaf_offset_of(*map_, context_, key);
  }
  /// Keys whose leaf the switch's tables do not know.
  std::uint64_t astray() {
    std::uint64_t count = 0;
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      const std::uint64_t found =
          dataplane::find(known_, dataplane::key_number("user", key_of(i))).address;
      count += found == leaf_of(key_of(i)) ? 0 : 1;
    }
    return count;
  }

  tree::StoreCore store_ = tree::make_store();
  tree::ThreadContext context_{store_, *store_.epochs.join(), 0};
  std::shared_ptr<tree::MapCore> map_ =
      *tree::create_map(store_, "map", {.node_bytes = 512, .log_bytes = 64});
  tree::MapUser user_{context_, map_};
  LocalRegion region_{store_.region.at(0)};
  IndexFollower follower_{{1, 2}, "user", kBase, {.ranges = 200, .sets = 4, .nodes_per_set = 5000}};
  FeedCursor::Landing landing_;
  std::optional<FeedCursor> cursor_;
  dataplane::IndexTables known_;
  std::uint64_t behind_ = 0;
};

TEST_F(IndexFollowing, EntriesOfLeavesThatMoveChangeAlone) {
  base::Random random(base::seed_from_environment(17));
  EXPECT_EQ(astray(), 0u);
  std::uint64_t changed = 0;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 60; ++i) {
      user_.put(key_of(random.below(kKeys)), "value");  // as long as before
    }
    if (round % 8 == 0) {
      EXPECT_GT(astray(), 0u) << "nothing has moved";
    }
    ASSERT_TRUE(take_feed());
    const auto changes = follower_.changes();
    ASSERT_TRUE(changes) << "they were compiled";
    for (const dataplane::EntryChange& change : *changes) {
      dataplane::set_address(known_, change.place, change.address);
    }
    changed += changes->size();
    ASSERT_EQ(known_, follower_.tables());
    ASSERT_EQ(astray(), 0u);
  }
  EXPECT_GT(changed, 100u);
  EXPECT_EQ(behind_, 1u);
  ASSERT_TRUE(follower_.changes());
  EXPECT_TRUE(follower_.changes()->empty());
}

TEST_F(IndexFollowing, AnotherShapeIsToBeRead) {
  for (std::uint64_t i = 0; i < 400; ++i) user_.put(key_of(i) + "more", "value");
  EXPECT_FALSE(take_feed());
  ASSERT_TRUE(follower_.read(*map_, region_));
  EXPECT_FALSE(follower_.changes());
  known_ = follower_.tables();
  EXPECT_EQ(astray(), 0u);
}

// What moves between reading and telling is told, whichever is first.
TEST_F(IndexFollowing, CountsCompileTheTreeAsItHasMoved) {
  base::Random random(base::seed_from_environment(18));
  for (int i = 0; i < 300; ++i) user_.put(key_of(random.below(kKeys)), "value");
  ASSERT_TRUE(take_feed());
  static_cast<void>(follower_.changes({{map_->root, 5}}));
  known_ = follower_.tables();
  EXPECT_EQ(astray(), 0u);
}

}  // namespace
}  // namespace espalier::place

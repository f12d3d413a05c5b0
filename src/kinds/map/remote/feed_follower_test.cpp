// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/remote/feed_follower.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "fabric/sim/testing/two_ends.hpp"
#include "kinds/map/remote/testing/feed_table.hpp"

namespace espalier::place {
namespace {

/// A table at one end of a pair, and a cache of where its nodes are at the other.
class FeedFollowing : public ::testing::Test {
 protected:
  FeedFollowing() {
    region_ = *host_->regions().offer({table_.region().at(0), table_.region().bytes()},
                                      fabric::RemoteRights::read, 0);
    EXPECT_TRUE(host_->listen("host"));
    EXPECT_TRUE(connect(world_, here_, there_, "host"));
    port_.emplace(*here_.pair, here_.sends, region_.remote(), client_->properties());
    cache_.emplace(nodes_, view_, false);
    follow();
  }
  void follow() {
    const auto place = table_.table().feed().add_follower();
    ASSERT_TRUE(place);
    follower_ = std::make_unique<FeedFollower>(*port_, *cache_, *FeedCursor::create(*place, view_));
  }
  /// Lets time pass, in which the follower may look several times.
  void look() {
    for (int i = 0; i < 200 && follower_; ++i) {
      port_->poll();
      follower_->poll(world_.now_ns());
      client_->wait(10'000);
    }
  }
  [[nodiscard]] wire::Ref known(std::size_t which) const {
    return nodes_.place(view_.id, table_.lid(which));
  }
  void keep(std::size_t which) { cache_->keep_place(table_.lid(which), now(which)); }
  [[nodiscard]] wire::Ref now(std::size_t which) { return table_.table().get(table_.lid(which)); }

  static tree::MapView view_of(const FeedTable& table) {
    tree::MapView view = table.view();
    view.geometry = tree::Geometry::of({.node_bytes = 512});
    return view;
  }

  FeedTable table_{8};
  fabric::sim::World world_{1, {}};
  std::unique_ptr<fabric::Endpoint> host_ = world_.add_node("host");
  std::unique_ptr<fabric::Endpoint> client_ = world_.add_node("client");
  fabric::Registration region_;
  fabric::sim::End here_{*client_};
  fabric::sim::End there_{*host_};
  const tree::MapView view_ = view_of(table_);
  NodeCache nodes_{1 << 20};
  std::optional<ReadPort> port_;
  std::optional<MapCache> cache_;
  std::unique_ptr<FeedFollower> follower_;
};

TEST_F(FeedFollowing, PlacesThatAreKnownAreReplacedAndOthersAreNotKept) {
  look();
  EXPECT_EQ(follower_->counts().behind, 1u);
  for (std::size_t i = 0; i < 8; ++i) table_.move(i, i + 1);
  look();
  EXPECT_EQ(follower_->counts().changes, 8u);
  EXPECT_EQ(follower_->counts().replaced, 0u);
  keep(2);
  keep(3);
  for (std::size_t i = 0; i < 3; ++i) table_.move(i, i + 10);
  look();
  EXPECT_EQ(follower_->counts().replaced, 1u);
  EXPECT_EQ(known(2), now(2));
  EXPECT_EQ(known(3), now(3));
  EXPECT_FALSE(known(1));
  table_.table().release(table_.lid(2));
  look();
  EXPECT_FALSE(known(2));
}

TEST_F(FeedFollowing, WhoFellBehindKnowsNoPlaces) {
  look();
  table_.move(1, 1);
  look();
  keep(1);
  std::uint64_t version = 1;
  for (std::uint32_t i = 0; i < 2 * wire::kFeedEntries; ++i) table_.move(i % 8, ++version);
  EXPECT_TRUE(known(1));
  look();
  EXPECT_EQ(follower_->counts().behind, 2u);
  EXPECT_FALSE(known(1));
  EXPECT_FALSE(follower_->ended());
}

// What is kept of a node that was replaced ends with it.
TEST_F(FeedFollowing, PiecesOfANodeThatMovedEnd) {
  look();
  table_.move(4, 1);
  look();
  const wire::Ref before = now(4);
  keep(4);
  const std::vector<std::byte> chunk(NodeCache::kChunkBytes, std::byte{7});
  nodes_.keep(before, 0, chunk);
  nodes_.keep(before, 1, chunk);
  table_.move(4, 2);
  look();
  EXPECT_EQ(nodes_.find(before, 0), nullptr);
  EXPECT_EQ(nodes_.find(before, 1), nullptr);
}

TEST_F(FeedFollowing, ItMayEndWhileItsReadsAreUnderWay) {
  look();
  for (int i = 0; i < 20; ++i) {
    follower_->poll(world_.now_ns() + FeedFollower::kQuietNs);  // asks
    follower_.reset();
    EXPECT_FALSE(port_->failed());
    for (int k = 0; k < 50; ++k) {
      port_->poll();
      client_->wait(10'000);
    }
    table_.table().feed().remove_follower();
    follow();
    look();
  }
  EXPECT_GT(follower_->counts().reads, 0u);
}

TEST_F(FeedFollowing, NothingIsFollowedOnceNothingCanBeRead) {
  look();
  port_->fail();
  look();
  EXPECT_TRUE(follower_->ended());
}

}  // namespace
}  // namespace espalier::place

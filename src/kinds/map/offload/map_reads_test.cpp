// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/offload/map_reads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>

#include "kinds/map/testing/map_objects.hpp"
#include "kinds/map/walk/next_step.hpp"

namespace espalier::offload {
namespace {

class MapReadsOf : public ::testing::Test {
 protected:
  static constexpr std::size_t kNodeBytes = 1024;

  explicit MapReadsOf(const MapOptions& options = {.node_bytes = kNodeBytes, .log_bytes = 256})
      : store_(tree::make_store()),
        context_(store_, *store_.epochs.join(), 0),
        map_(*tree::create_map(store_, "m", options)),
        user_(context_, map_) {
    for (int i = 0; i < 200; ++i) user_.put("key " + std::to_string(1000 + i), "first");
    reads_ = *MapReads::create(store_, map_, "", &counts_);
  }
  /// Where the leaf of a key is now.
  [[nodiscard]] wire::Ref leaf_of(std::string_view key) const {
    tree::Cursor cursor;
    cursor.key.assign(key);
    cursor.read_version = tree::kNewest;
    return tree::find_leaf(*map_, cursor, {});
  }
  /// Writes a key until its leaf lies elsewhere. Returns where it was.
  wire::Ref move_leaf(std::string_view key) {
    const wire::Ref before = leaf_of(key);
    for (int i = 0; i < 1000 && leaf_of(key) == before; ++i) {
      user_.put(key, "value " + std::to_string(i));
    }
    EXPECT_NE(leaf_of(key), before);
    return before;
  }
  /// Which node a READ brings that begins there; none: zeros.
  wire::Ref read_at(std::uint64_t offset) {
    reads_->read_at(offset, bytes_);
    return tree::NodeView(bytes_.data(), map_->geometry).self_ref();
  }

  tree::StoreCore store_;
  tree::ThreadContext context_;
  std::shared_ptr<tree::MapCore> map_;
  tree::MapUser user_;
  IndexReadCounts counts_;
  std::shared_ptr<MapReads> reads_;
  alignas(8) std::array<std::byte, kNodeBytes> bytes_{};
};

class MapReadsWithoutVersions : public MapReadsOf {
 protected:
  MapReadsWithoutVersions()
      : MapReadsOf({.node_bytes = kNodeBytes, .log_bytes = 256, .versions = false}) {}
};

TEST_F(MapReadsOf, ALeafThatWasReplacedBringsTheOneInItsPlace) {
  const std::string key = "key 1100";
  const wire::Ref first = leaf_of(key);
  EXPECT_EQ(read_at(first.offset()), first);
  EXPECT_EQ(counts_.followed, 0u);
  for (std::uint64_t moves = 1; moves <= 5; ++moves) {
    move_leaf(key);
    EXPECT_EQ(read_at(first.offset()), leaf_of(key));
    EXPECT_EQ(counts_.followed, moves);
  }
  EXPECT_EQ(counts_.leaves, 6u);
  EXPECT_EQ(counts_.nothing, 0u);
}

TEST_F(MapReadsWithoutVersions, ALeafThatWasReplacedBringsTheOneInItsPlace) {
  const wire::Ref first = move_leaf("key 1100");
  EXPECT_EQ(read_at(first.offset()), leaf_of("key 1100"));
  EXPECT_EQ(counts_.followed, 1u);
}

// A reader that holds the earlier read version needs the superseded leaf itself.
TEST_F(MapReadsOf, ALeafThatIsReplacedAtAVersionThatNoReadHasYetComesItself) {
  const wire::Ref first = move_leaf("key 1100");
  std::byte* const superseded = map_->at(first.offset()) + offsetof(wire::NodeHeader, superseded);
  base::store_shared<std::uint64_t>(superseded, map_->clock.released() + 1);
  EXPECT_EQ(read_at(first.offset()), first);
  EXPECT_EQ(counts_.followed, 0u);
  base::store_shared<std::uint64_t>(superseded, map_->clock.released());
  EXPECT_EQ(read_at(first.offset()), leaf_of("key 1100"));
}

// A leaf that names nothing, something else than a node, or itself.
TEST_F(MapReadsOf, ASuccessorIsFollowedAsFarAsItIsANode) {
  const wire::Ref first = move_leaf("key 1100");
  std::byte* const successor = map_->at(first.offset()) + offsetof(wire::NodeHeader, successor_ref);
  const std::uint32_t generation = leaf_of("key 1100").generation();
  for (const std::uint64_t bits :
       {std::uint64_t{0}, leaf_of("key 1100").bits + wire::kBlockBytes,
        wire::Ref::make(map_->header_offset, 1).bits,
        wire::Ref::make(leaf_of("key 1100").offset(), generation + 1).bits, first.bits}) {
    base::store_shared<std::uint64_t>(successor, bits);
    EXPECT_EQ(read_at(first.offset()), first) << std::hex << bits;
  }
  EXPECT_EQ(counts_.followed, 0u);
}

TEST_F(MapReadsOf, ALeafWhoseMemoryIsFreeBringsZeros) {
  const wire::Ref first = move_leaf("key 1100");
  for (int i = 0; i < 10; ++i) store_.reclaimer.collect(context_.cache);
  ASSERT_FALSE(
      store_.pool.is_buffer_begin(first.offset(), memory::BufferKind::node, first.generation()));
  read_at(first.offset());
  EXPECT_TRUE(std::ranges::all_of(bytes_, [](std::byte byte) { return byte == std::byte{0}; }));
  EXPECT_EQ(counts_.nothing, 1u);
}

}  // namespace
}  // namespace espalier::offload

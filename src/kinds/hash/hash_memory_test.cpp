// SPDX-License-Identifier: Apache-2.0
// How a map grows, and what it does where memory is short.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "kinds/hash/testing/hash_fixture.hpp"

namespace espalier::hash {
namespace {

// All segments are due at about the same time, one is split after the other, and some have no room
// for their turn: they are split at once, and the put moves bins of its own segment alone.
TEST(HashMemory, APutMovesFewBins) {
  HashFixture f({.partitions = 1, .seed = HashSeed{5, 6}});
  const Partition& partition = f.map->partitions().front();
  std::uint64_t longest = 0;
  for (int i = 0; i < 150'000; ++i) {
    const std::uint64_t before = partition.bins_moved();
    f.put("key" + std::to_string(i), "v");
    longest = std::max(longest, partition.bins_moved() - before);
    if (i % 25'000 == 0) {
      ASSERT_EQ(f.faults(), "");
    }
  }
  EXPECT_GT(partition.splits(), 100u);
  EXPECT_GE(longest, Partition::kBinsPerWrite);
  EXPECT_LE(longest, 40u);
  EXPECT_EQ(f.faults(), "");
}

// A segment that is full has room for some more keys: as long as it has, no memory is reclaimed,
// by which snapshots could expire, so that it can be split.
TEST(HashMemory, GrowthThatCanWaitReclaimsNothing) {
  HashFixture f({.partitions = 1, .seed = HashSeed{5, 6}});
  for (std::uint32_t i = 0; i < Partition::kSplitSlots; ++i) f.put("key" + std::to_string(i), "v");
  ASSERT_EQ(f.map->partitions().front().splits(), 0u);
  f.parts.pool.fail_from(0);
  int reclaims = 0;
  f.parts.pool.set_reclaim([&](bool) {
    ++reclaims;
    return false;
  });
  for (int i = 0; i < 20; ++i) f.put("more" + std::to_string(i), "v");
  EXPECT_EQ(reclaims, 0);
  EXPECT_EQ(f.map->partitions().front().splits(), 0u);
  // Until there is none: then it must grow.
  Result<HashWritten> put = HashWritten{};
  for (int i = 0; put && i < 1000; ++i) put = f.map->put(f.thread, "last" + std::to_string(i), "v");
  EXPECT_FALSE(put);
  EXPECT_GT(reclaims, 0);
  f.parts.pool.fail_after(-1);
  EXPECT_TRUE(f.map->put(f.thread, "again", "v"));
  EXPECT_EQ(f.faults(), "");
}

TEST(HashMemory, AFullStoreGetsWhatAnIdleMapNeedsNoMore) {
  StoreParts parts(std::uint64_t{8} << 20);
  HashThread thread = HashThread::join(parts.store).value();
  const auto idle = create_hash_map(parts.store, "idle", {.partitions = 4}).value();
  const auto busy = create_hash_map(parts.store, "busy", {.partitions = 4}).value();
  const auto put_all = [&](char of) {
    for (int i = 0; i < 1500; ++i) {
      ASSERT_TRUE(idle->put(thread, "key" + std::to_string(i), std::string(600, of)));
    }
  };
  put_all('a');
  const HashSnapshot snapshot = idle->hold(thread).value();
  put_all('b');
  EXPECT_EQ(audit(*idle).links, 1500u);
  const std::uint64_t pages = idle->records().numbers().pages;
  idle->drop(snapshot);
  Result<HashWritten> put = HashWritten{};
  for (int i = 0; put; ++i) {
    put = busy->put(thread, "key" + std::to_string(i), std::string(600, 'c'));
  }
  EXPECT_EQ(put.error().code, Code::out_of_memory);
  idle->records().trim();
  EXPECT_EQ(audit(*idle).links, 0u);
  EXPECT_LT(idle->records().numbers().pages, pages / 2 + 4);
  EXPECT_EQ(idle->get(thread, "key7").value(), std::string(600, 'b'));
}

TEST(HashMemory, ADroppedMapWaitsForLeasesAndGoesInSteps) {
  HashFixture f;
  const auto put_all = [&](char of) {
    for (int i = 0; i < 300; ++i) f.put("long" + std::to_string(i), std::string(20'000, of));
    for (int i = 0; i < 10'000; ++i) f.put("key" + std::to_string(i), std::string(50, of));
  };
  put_all('a');
  const HashSnapshot snapshot = f.map->hold(f.thread).value();
  put_all('b');
  f.map->drop(snapshot);
  store::DroppedObjects& dropped = f.parts.dropped;
  dropped.free_in_steps(true);
  const auto lease = f.parts.leases.grant(1, 0);
  ASSERT_TRUE(f.parts.catalog.drop<HashMap>("map"));
  EXPECT_EQ(dropped.size(), 0u) << "a thread has it";
  f.map.reset();
  EXPECT_EQ(dropped.size(), 1u);
  EXPECT_FALSE(dropped.due());
  EXPECT_GT(dropped.bytes(), 300u * 20'000 * 2);
  EXPECT_GT(f.parts.pool.stats(memory::kRecordsClass).in_use, 40u);
  f.parts.leases.end(lease.id);
  ASSERT_TRUE(dropped.due());
  int steps = 0;
  for (std::uint64_t waiting = dropped.bytes(); dropped.collect_some(4); ++steps) {
    ASSERT_LT(dropped.bytes(), waiting);
    waiting = dropped.bytes();
  }
  EXPECT_GT(steps, 10);
  EXPECT_EQ(dropped.size(), 0u);
  f.thread.cache->flush();
  for (memory::SizeClass cls = 0; cls < memory::kClasses; ++cls) {
    EXPECT_EQ(f.parts.pool.stats(cls).in_use, 0u) << memory::class_bytes(cls);
  }
}

}  // namespace
}  // namespace espalier::hash

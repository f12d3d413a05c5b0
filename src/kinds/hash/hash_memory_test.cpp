// SPDX-License-Identifier: Apache-2.0
// How a map grows, and what it does where memory is short.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/lease_table.hpp"
#include "kinds/hash/testing/hash_fixture.hpp"
#include "store/store_parts.hpp"

namespace espalier::hash {
namespace {

// All segments are due at about the same time, they are split one at a time, and some have no room
// before their turn: they are split immediately, and the put moves bins of its own segment alone.
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

// A segment that is full has room for some more keys: as long as it has, no memory is sought, by
// which snapshots could expire, so that it can be split.
TEST(HashMemory, GrowthThatCanWaitReclaimsNothing) {
  HashFixture f({.partitions = 1, .seed = HashSeed{5, 6}});
  f.parts.dropped.free_in_steps(true);
  (void)create_hash_map(f.parts.store, "dropped").value();
  ASSERT_TRUE(f.parts.catalog.drop<HashMap>("dropped"));
  ASSERT_EQ(f.parts.dropped.size(), 1u);
  for (std::uint32_t i = 0; i < Partition::kSplitSlots; ++i) f.put("key" + std::to_string(i), "v");
  ASSERT_EQ(f.map->partitions().front().splits(), 0u);
  f.parts.pool.fail_from(0);
  for (int i = 0; i < 20; ++i) f.put("more" + std::to_string(i), "v");
  EXPECT_EQ(f.parts.dropped.size(), 1u) << "nobody asked for its memory";
  EXPECT_EQ(f.map->partitions().front().splits(), 0u);
  // Until there is none: then it must grow.
  Result<HashWritten> put = HashWritten{};
  for (int i = 0; put && i < 1000; ++i) put = f.map->put(f.thread, "last" + std::to_string(i), "v");
  EXPECT_FALSE(put);
  EXPECT_EQ(f.parts.dropped.size(), 0u);
  f.parts.pool.fail_after(-1);
  EXPECT_TRUE(f.map->put(f.thread, "again", "v"));
  EXPECT_EQ(f.faults(), "");
}

/// A store that a map has filled.
class FullStore {
 public:
  FullStore() { stored = fill(*f.map); }
  [[nodiscard]] static std::string key_of(int i) { return "key" + std::to_string(i); }
  Result<HashWritten> put(HashMap& map, int i) {
    return map.put(f.thread, key_of(i), std::string(600, 'v'));
  }
  /// Puts until it is refused; returns how many were not.
  int fill(HashMap& map, int first = 0) {
    int count = 0;
    Result<HashWritten> last = HashWritten{};
    while ((last = put(map, first + count))) ++count;
    EXPECT_EQ(last.error().code, Code::out_of_memory);
    return count;
  }

  HashFixture f{{.partitions = 4}, std::uint64_t{8} << 20};
  int stored = 0;
};

// No other thread frees it: elsewhere idle threads free in steps.
TEST(HashMemory, APutAsksForTheMemoryOfWhatWasDropped) {
  FullStore full;
  StoreParts& parts = full.f.parts;
  for (int i = 0; i < full.stored; ++i) {
    ASSERT_TRUE(full.f.map->erase(full.f.thread, FullStore::key_of(i)));
  }
  auto other = create_hash_map(parts.store, "other", {.partitions = 4}).value();
  EXPECT_GT(full.fill(*other), full.stored / 2);
  const int again = full.fill(*full.f.map);
  parts.dropped.free_in_steps(true);
  ASSERT_TRUE(parts.catalog.drop<HashMap>("other"));
  other.reset();
  ASSERT_EQ(parts.dropped.size(), 1u);
  EXPECT_TRUE(full.put(*full.f.map, again));
  EXPECT_EQ(parts.dropped.size(), 0u);
  EXPECT_GT(full.fill(*full.f.map, again), full.stored / 2);
}

/// Ends a lease when a sweep was requested, as the owner of leases does.
class EndsALease final : public espalier::store::StorePart {
 public:
  EndsALease(base::LeaseTable& leases, base::LeaseId lease)
      : leases_(leases), lease_(lease), asked_before_(leases.sweeps_asked()) {}
  bool give_back(memory::BufferCache&) noexcept override {
    if (leases_.sweeps_asked() != asked_before_) leases_.end(lease_);
    return false;
  }

 private:
  base::LeaseTable& leases_;
  const base::LeaseId lease_;
  const std::uint64_t asked_before_;
};

// A lease holds memory for a bounded time, after which the owner of leases ends it.
TEST(HashMemory, APutWaitsForWhatALeaseHolds) {
  FullStore full;
  StoreParts& parts = full.f.parts;
  const auto lease = parts.leases.grant(1, 0);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(full.f.map->erase(full.f.thread, FullStore::key_of(i)));
  }
  ASSERT_EQ(parts.leases.size(), 1u);
  static_cast<void>(parts.parts.of<EndsALease>(parts.leases, lease.id));
  EXPECT_TRUE(full.put(*full.f.map, full.stored));
  EXPECT_EQ(parts.leases.size(), 0u);
}

TEST(HashMemory, AFullStoreGetsWhatAnIdleMapNeedsNoMore) {
  StoreParts parts(std::uint64_t{8} << 20);
  HashThread thread = HashThread::join(parts.store).value();
  // How full pages are at the end depends on the seed by which keys are spread.
  const HashOptions options{.partitions = 4, .seed = HashSeed{5, 6}};
  const auto idle = create_hash_map(parts.store, "idle", options).value();
  const auto busy = create_hash_map(parts.store, "busy", options).value();
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

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "memory/buffer_cache.hpp"
#include "memory/buffer_pool.hpp"
#include "memory/testing/node_class.hpp"
#include "wire/ref.hpp"

namespace espalier::memory {
namespace {

constexpr SizeClass kLarge = BufferPool::class_of(4 << 20);

class BufferCacheTest : public ::testing::Test {
 protected:
  BufferCacheTest()
      : region_(*Region::reserve({.bytes_max = 8 * kExtentBytes, .huge_pages = false})),
        pool_(region_) {}

  void expect_balanced(SizeClass cls, std::uint64_t in_use) {
    const ClassStats stats = pool_.stats(cls);
    EXPECT_EQ(stats.in_use, in_use);
    EXPECT_EQ(stats.in_use + stats.free, stats.taken);
  }
  std::uint32_t generation(std::uint64_t offset) {
    std::uint32_t generation = 0;
    std::memcpy(&generation, region_.at(offset) + offsetof(wire::BufferHeader, generation), 4);
    return generation;
  }
  /// Takes everything that the region still has, as buffers of this class.
  void exhaust(SizeClass cls) {
    while (pool_.allocate(cls)) continue;
  }

  Region region_;
  BufferPool pool_;
};

TEST_F(BufferCacheTest, WhatWasFreedLastComesBackFirstWithANewGeneration) {
  BufferCache cache(pool_);
  const std::uint64_t a = *cache.allocate(kNode);
  const std::uint64_t b = *cache.allocate(kNode);
  EXPECT_EQ(b, a + 8192);  // fresh memory comes in the order of its addresses
  EXPECT_EQ(generation(a), 1u);
  cache.release(b, kNode);
  cache.release(a, kNode);
  EXPECT_EQ(generation(a), 2u);
  EXPECT_EQ(*cache.allocate(kNode), a);
  EXPECT_EQ(*cache.allocate(kNode), b);
  expect_balanced(kNode, 2);
}

TEST_F(BufferCacheTest, KeepsABoundedNumber) {
  BufferCache cache(pool_);
  std::vector<std::uint64_t> offsets;
  for (int i = 0; i < 1000; ++i) offsets.push_back(*cache.allocate(kNode));
  expect_balanced(kNode, 1000);
  for (const std::uint64_t offset : offsets) cache.release(offset, kNode);
  expect_balanced(kNode, 0);
  // All but the extents that the cache's few buffers lie in, and the one kept, have gone back.
  EXPECT_LE(region_.taken_bytes(), 4 * kExtentBytes);
  cache.flush();
  pool_.trim();
  EXPECT_EQ(region_.taken_bytes(), kExtentBytes);
}

TEST_F(BufferCacheTest, LargeBuffersAreNotKept) {
  BufferCache cache(pool_);
  cache.release(*cache.allocate(kLarge), kLarge);
  EXPECT_EQ(region_.taken_bytes(), kExtentBytes);
  expect_balanced(kLarge, 0);
}

TEST_F(BufferCacheTest, EndsWithoutALeak) {
  std::uint64_t kept = 0;
  {
    BufferCache cache(pool_);
    kept = *cache.allocate(kNode);
    ASSERT_TRUE(cache.reserve(kNode, 100));
  }
  expect_balanced(kNode, 1);
  BufferCache other(pool_);
  other.release(kept, kNode);  // by another cache than allocated it
  expect_balanced(kNode, 0);
}

TEST_F(BufferCacheTest, AReservationHoldsWhenTheRegionIsFull) {
  BufferCache cache(pool_);
  ASSERT_TRUE(cache.reserve(kNode, 300));
  ASSERT_TRUE(cache.reserve(kLarge, 1));
  exhaust(0);
  exhaust(kNode);
  // Coming and going beyond the cache's capacity does not touch what is reserved.
  std::vector<std::uint64_t> offsets;
  for (int i = 0; i < 200; ++i) offsets.push_back(*cache.allocate(kNode));
  for (const std::uint64_t offset : offsets) cache.release(offset, kNode);
  EXPECT_EQ(cache.reserved(kNode), 100u);
  cache.flush();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(cache.allocate(kNode));
  EXPECT_EQ(cache.reserved(kNode), 0u);
  EXPECT_TRUE(cache.allocate(kLarge));
  EXPECT_EQ(cache.allocate(kLarge).error().code, Code::out_of_memory);
}

TEST_F(BufferCacheTest, AReservationThatFailsChangesNothing) {
  BufferCache cache(pool_);
  ASSERT_TRUE(cache.reserve(kNode, 10));
  const auto failed = cache.reserve(kNode, 100000);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error(), (Error{Code::out_of_memory, 0, 16}));
  EXPECT_EQ(cache.reserved(kNode), 10u);
  expect_balanced(kNode, 0);
  EXPECT_TRUE(pool_.allocate(kLarge));  // nothing was hoarded
  ASSERT_TRUE(cache.reserve(kNode, 0));
  cache.flush();
  pool_.trim();
  EXPECT_EQ(region_.taken_bytes(), 3 * kExtentBytes);
}

TEST_F(BufferCacheTest, FailuresComeWhereTheyWereTold) {
  BufferCache cache(pool_);
  pool_.fail_after(2);
  ASSERT_TRUE(cache.reserve(kNode, 2));
  EXPECT_TRUE(cache.allocate(kNode));  // covered: not counted
  EXPECT_TRUE(cache.allocate(kNode));
  EXPECT_TRUE(cache.allocate(kNode));
  EXPECT_EQ(cache.allocate(kNode).error().code, Code::out_of_memory);
  EXPECT_TRUE(cache.allocate(kNode));
  pool_.fail_after(0);
  EXPECT_EQ(cache.reserve(kNode, 1).error().code, Code::out_of_memory);
  EXPECT_TRUE(cache.reserve(kNode, 1));
  expect_balanced(kNode, 4);
}

TEST_F(BufferCacheTest, WhatOtherCachesHoldIsRecalled) {
  BufferCache idle(pool_);
  BufferCache needy(pool_);
  std::vector<std::uint64_t> held;
  for (int i = 0; i < 40; ++i) held.push_back(*idle.allocate(kNode));
  ASSERT_TRUE(idle.reserve(0, 3));
  exhaust(kLarge);
  exhaust(kNode);
  exhaust(0);
  for (const std::uint64_t offset : held) idle.release(offset, kNode);
  const std::uint64_t cached = idle.pool().stats(kNode).free;
  ASSERT_GE(cached, held.size());
  EXPECT_FALSE(needy.allocate(kNode));
  pool_.recall();
  for (std::uint64_t i = 0; i < cached; ++i) ASSERT_TRUE(needy.allocate(kNode)) << i;
  EXPECT_FALSE(needy.allocate(kNode));
  EXPECT_EQ(idle.reserved(0), 3u);  // what is reserved stays
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(idle.allocate(0));
}

// Threads that take from each other's caches all the time, for there is never enough.
TEST(BufferCacheConcurrency, CachesAreRecalledWhileTheyAreUsed) {
  Region region = *Region::reserve({.bytes_max = 4 * kExtentBytes, .huge_pages = false});
  BufferPool pool(region);
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> refused{0};
  for (std::uint64_t thread = 1; thread <= 3; ++thread) {
    threads.emplace_back([&, thread] {
      BufferCache cache(pool);
      base::Random random(thread);
      std::vector<std::uint64_t> mine;
      for (int step = 0; step < 20000; ++step) {
        if (random() % 8 < 5) {
          const auto offset = cache.allocate(kNode);
          if (!offset) {
            refused.fetch_add(1);
            pool.recall();
            while (mine.size() > 20) {
              cache.release(mine.back(), kNode);
              mine.pop_back();
            }
            continue;
          }
          std::memcpy(pool.at(*offset) + sizeof(wire::BufferHeader), &thread, sizeof thread);
          mine.push_back(*offset);
        } else if (!mine.empty()) {
          std::uint64_t owner = 0;
          std::memcpy(&owner, pool.at(mine.back()) + sizeof(wire::BufferHeader), sizeof owner);
          ASSERT_EQ(owner, thread);
          cache.release(mine.back(), kNode);
          mine.pop_back();
        }
      }
      for (const std::uint64_t offset : mine) cache.release(offset, kNode);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(refused.load(), 0u);
  const ClassStats stats = pool.stats(kNode);
  EXPECT_EQ(stats.in_use, 0u);
  EXPECT_EQ(stats.free, stats.taken);
  pool.trim();
  EXPECT_EQ(region.taken_bytes(), kExtentBytes);
}

// Threads that find no free buffer at the same moment each take another extent. An extent of which
// no buffer was taken would never become empty again, and so never be returned.
TEST(BufferCacheConcurrency, NoExtentIsTakenInVain) {
  Region region = *Region::reserve({.bytes_max = 32 * kExtentBytes, .huge_pages = false});
  BufferPool pool(region);
  constexpr int kThreads = 4;
  constexpr int kRounds = 2'000;
  int left = 0;  // rounds after which something was not given back
  std::barrier together(kThreads, [&]() noexcept {
    pool.trim();
    left += region.taken_bytes() == kExtentBytes ? 0 : 1;
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        together.arrive_and_wait();
        const auto offset = pool.allocate(kNode);
        if (offset) pool.release(*offset, kNode);
      }
      together.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(left, 0);
  EXPECT_EQ(pool.stats(kNode).taken, 0u);
}

// Buffers travel between threads; each use of an offset has a generation of its own.
TEST(BufferCacheConcurrency, BuffersTravelBetweenThreads) {
  Region region = *Region::reserve({.bytes_max = 32 * kExtentBytes, .huge_pages = false});
  BufferPool pool(region);
  constexpr int kThreads = 3;
  constexpr int kSteps = 20000;
  std::array<std::atomic<std::uint64_t>, 16> mailboxes{};
  std::array<std::vector<std::uint64_t>, kThreads> refs;
  std::vector<std::thread> threads;
  std::atomic<bool> stop{false};
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      BufferCache cache(pool);
      base::Random random(static_cast<std::uint64_t>(thread));
      for (int step = 0; step < kSteps; ++step) {
        const auto offset = cache.allocate(kNode);
        ASSERT_TRUE(offset);
        std::byte* const at = pool.at(*offset);
        wire::BufferHeader header;
        std::memcpy(&header, at, sizeof(header));
        ASSERT_EQ(header.superseded, 0u);
        refs[static_cast<std::size_t>(thread)].push_back(
            wire::Ref::make(*offset, header.generation).bits);
        std::memcpy(at + sizeof(header), &*offset, sizeof(*offset));
        const std::uint64_t other =
            mailboxes[random() % mailboxes.size()].exchange(*offset, std::memory_order_acq_rel);
        if (other == 0) continue;
        std::uint64_t body = 0;
        std::memcpy(&body, pool.at(other) + sizeof(header), sizeof(body));
        ASSERT_EQ(body, other);
        cache.release(other, kNode);
        if (step % 1000 == 0) {
          ASSERT_TRUE(cache.reserve(kNode, 50));
        }
        if (step % 3000 == 0) cache.flush();
      }
    });
  }
  std::thread observer([&] {
    while (!stop.load(std::memory_order_acquire)) {
      const ClassStats stats = pool.stats(kNode);  // only has to be free of races
      ASSERT_LE(stats.in_use, std::uint64_t{kThreads} * kSteps);
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads) thread.join();
  stop.store(true, std::memory_order_release);
  observer.join();
  for (auto& mailbox : mailboxes) {
    if (mailbox.load() != 0) pool.release(mailbox.load(), kNode);
  }
  std::set<std::uint64_t> all;
  for (const auto& list : refs) {
    for (const std::uint64_t ref : list) ASSERT_TRUE(all.insert(ref).second);
  }
  const ClassStats stats = pool.stats(kNode);
  EXPECT_EQ(stats.in_use, 0u);
  EXPECT_EQ(stats.free, stats.taken);
  pool.trim();
  EXPECT_EQ(region.taken_bytes(), kExtentBytes);
}

}  // namespace
}  // namespace espalier::memory

// SPDX-License-Identifier: Apache-2.0
#include "memory/buffer_pool.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "memory/buffer_cache.hpp"
#include "memory/extent.hpp"
#include "memory/testing/node_class.hpp"
#include "wire/ref.hpp"

namespace espalier::memory {
namespace {

constexpr std::uint32_t kPerExtent = buffers_per_extent(kNode);

class BufferPoolTest : public ::testing::Test {
 protected:
  explicit BufferPoolTest(std::uint64_t extents = 64)
      : region_(*Region::reserve({.bytes_max = extents * kExtentBytes, .huge_pages = false})),
        pool_(region_) {}

  wire::BufferHeader header(std::uint64_t offset) {
    wire::BufferHeader header;
    std::memcpy(&header, region_.at(offset), sizeof(header));
    return header;
  }
  void set_header(std::uint64_t offset, const wire::BufferHeader& header) {
    std::memcpy(region_.at(offset), &header, sizeof(header));
  }
  /// As a tree does with a node: everything but the generation.
  void use(std::uint64_t offset, SizeClass cls) {
    wire::BufferHeader h = header(offset);
    std::memset(region_.at(offset), 0xA5, BufferPool::class_bytes(cls));
    h = {1, h.generation, 5, wire::kLive};
    set_header(offset, h);
  }
  void expect_balanced() {
    for (SizeClass cls = 0; cls < kClasses; ++cls) {
      const ClassStats stats = pool_.stats(cls);
      ASSERT_EQ(stats.in_use + stats.free, stats.taken) << "class " << cls;
    }
  }
  [[nodiscard]] std::uint64_t extents_taken() const {
    return region_.taken_bytes() / kExtentBytes - 1;
  }

  /// Holds where buffers begin, and where they have their inside, against all that ever were.
  void keeps_its_places(std::uint64_t offset, SizeClass cls) {
    for (std::uint64_t at = 0; at < class_bytes(cls); at += wire::kBlockBytes) {
      const auto [known, first] = places_.emplace(offset + at, std::pair(cls, at));
      ASSERT_TRUE(first || known->second == std::pair(cls, at)) << offset << " + " << at;
    }
    const auto [extent, first] = kinds_.emplace(offset / kExtentBytes, kind_of(cls));
    ASSERT_TRUE(first || extent->second == kind_of(cls));
  }

  Region region_;
  BufferPool pool_;
  std::map<std::uint64_t, std::pair<SizeClass, std::uint64_t>> places_;  // by offset of a block
  std::map<std::uint64_t, BufferKind> kinds_;                            // by extent
};

TEST_F(BufferPoolTest, BuffersLieApartAndOnTheGrainOfReferences) {
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t offset = *pool_.allocate(kNode);
    EXPECT_NE(offset, 0u);
    EXPECT_EQ(offset % wire::kBlockBytes, 0u);
    for (std::uint64_t part = 0; part < 8192; part += wire::kBlockBytes) {
      EXPECT_TRUE(seen.insert(offset + part).second);
    }
  }
  EXPECT_EQ(extents_taken(), 4u);
  EXPECT_EQ(pool_.stats(kNode).in_use, 1000u);
  EXPECT_EQ(pool_.stats(kNode).taken, 4 * kPerExtent);
  expect_balanced();
}

TEST_F(BufferPoolTest, ExtentsBeginTheirBuffersAtDifferentDistances) {
  std::set<std::uint64_t> distances;
  for (std::uint32_t i = 0; i < kStaggers * kPerExtent; ++i) {
    distances.insert(*pool_.allocate(kNode) % 8192);
  }
  EXPECT_EQ(distances.size(), kStaggers);
  EXPECT_EQ(*distances.rbegin() - *distances.begin(), (kStaggers - 1) * kStaggerBytes);
}

TEST_F(BufferPoolTest, HeadersSayFreeAndTheGenerationMovesOn) {
  const std::uint64_t offset = *pool_.allocate(kNode);
  EXPECT_EQ(header(offset).generation, 1u);
  EXPECT_EQ(header(offset).superseded, 0u);
  use(offset, kNode);
  pool_.release(offset, kNode);
  EXPECT_EQ(header(offset).generation, 2u);
  EXPECT_EQ(header(offset).superseded, 0u);
  EXPECT_EQ(header(offset).created, 5u);  // the rest is as it was
  EXPECT_EQ(*pool_.allocate(kNode), offset);
  EXPECT_EQ(header(offset).generation, 2u);
}

TEST_F(BufferPoolTest, GenerationsSkipZeroInTheirLow28Bits) {
  const std::uint64_t offset = *pool_.allocate(kNode);
  for (const std::uint32_t last : {wire::kGenerationMask, ~std::uint32_t{0}}) {
    wire::BufferHeader h = header(offset);
    h.generation = last;
    set_header(offset, h);
    pool_.release(offset, kNode);
    EXPECT_EQ(header(offset).generation & wire::kGenerationMask, 1u);
    EXPECT_EQ(*pool_.allocate(kNode), offset);
  }
}

TEST_F(BufferPoolTest, WhatWasFreedLastComesBackFirst) {
  std::vector<std::uint64_t> offsets;
  for (int i = 0; i < 10; ++i) offsets.push_back(*pool_.allocate(kNode));
  for (const std::uint64_t offset : offsets) pool_.release(offset, kNode);
  for (auto it = offsets.rbegin(); it != offsets.rend(); ++it) {
    EXPECT_EQ(*pool_.allocate(kNode), *it);
  }
}

TEST_F(BufferPoolTest, EmptyExtentsGoBackAndOneIsKept) {
  std::vector<std::uint64_t> offsets;
  for (int i = 0; i < static_cast<int>(kPerExtent) * 5; ++i)
    offsets.push_back(*pool_.allocate(kNode));
  EXPECT_EQ(extents_taken(), 5u);
  for (const std::uint64_t offset : offsets) pool_.release(offset, kNode);
  EXPECT_EQ(extents_taken(), 1u);
  EXPECT_EQ(pool_.stats(kNode).taken, kPerExtent);
  pool_.trim();
  EXPECT_EQ(extents_taken(), 0u);
  EXPECT_EQ(pool_.stats(kNode).taken, 0u);
  expect_balanced();
}

TEST_F(BufferPoolTest, AnExtentKeepsItsClassAndItsGenerations) {
  std::vector<std::uint64_t> offsets;
  for (int i = 0; i < static_cast<int>(kPerExtent); ++i) offsets.push_back(*pool_.allocate(kNode));
  // One buffer has seen many uses; it is the extent's highest generation.
  for (int i = 0; i < 1000; ++i) {
    pool_.release(offsets[17], kNode);
    ASSERT_EQ(*pool_.allocate(kNode), offsets[17]);
  }
  for (const std::uint64_t offset : offsets) pool_.release(offset, kNode);
  pool_.trim();
  EXPECT_EQ(extents_taken(), 0u);
  const std::uint64_t other = *pool_.allocate(node_class_of(16384));
  EXPECT_NE(other / kExtentBytes, offsets[0] / kExtentBytes);
  const std::uint64_t again = *pool_.allocate(kNode);
  EXPECT_EQ(again, offsets[0]);
  EXPECT_GT(header(again).generation, 1001u);
}

TEST_F(BufferPoolTest, ARunKeepsItsPlace) {
  const SizeClass large = BufferPool::class_of(5 << 20);
  const std::uint64_t run = *pool_.allocate(large);
  for (int i = 0; i < 50; ++i) {
    pool_.release(run, large);
    ASSERT_EQ(*pool_.allocate(large), run);
  }
  EXPECT_EQ(extents_taken(), 3u);
  const std::uint32_t last = header(run).generation;
  EXPECT_GT(last, 50u);
  pool_.release(run, large);
  EXPECT_EQ(extents_taken(), 0u);
  // Neither shorter runs nor longer ones begin in it, or have it inside.
  for (const std::uint64_t mib : {2, 4, 8}) {
    const std::uint64_t other = *pool_.allocate(BufferPool::class_of(mib << 20));
    EXPECT_TRUE(other + (mib << 20) <= run || other >= run + 3 * kExtentBytes) << mib;
  }
  EXPECT_EQ(*pool_.allocate(large), run);
  EXPECT_GT(header(run).generation, last);
}

TEST_F(BufferPoolTest, ShortValuesShareAnExtentAndKindsDoNot) {
  const SizeClass values[] = {0, 3, 9, 20};
  std::set<std::uint64_t> value_extents;
  for (const SizeClass cls : values) value_extents.insert(*pool_.allocate(cls) / kExtentBytes);
  EXPECT_EQ(value_extents.size(), 1u);
  EXPECT_EQ(region_.taken_bytes(), kExtentBytes + std::size(values) * kSlabBytes);
  const std::uint64_t page = *pool_.allocate(table_class_of(32768)) / kExtentBytes;
  const std::uint64_t map = *pool_.allocate(table_class_of(192)) / kExtentBytes;
  const std::uint64_t node = *pool_.allocate(node_class_of(512)) / kExtentBytes;
  const std::uint64_t rows = *pool_.allocate(relation_class_of(kExtentBytes)) / kExtentBytes;
  const std::uint64_t list = *pool_.allocate(relation_class_of(32768)) / kExtentBytes;
  EXPECT_EQ(page, map);
  EXPECT_FALSE(value_extents.contains(page));
  EXPECT_FALSE(value_extents.contains(node));
  EXPECT_NE(page, node);
  EXPECT_NE(rows, list);  // a page of rows has its extent for itself
  for (const std::uint64_t relation : {rows, list}) {
    EXPECT_FALSE(value_extents.contains(relation));
    EXPECT_NE(relation, page);
    EXPECT_NE(relation, node);
  }
}

// A value of 2 MiB has the same length as a page of rows, and still never lies where one was.
TEST_F(BufferPoolTest, PagesOfRowsComeBackWherePagesOfRowsWere) {
  const SizeClass page = relation_class_of(kExtentBytes);
  const std::uint64_t rows = *pool_.allocate(page);
  EXPECT_EQ(rows % kExtentBytes, 0u);
  use(rows, page);
  const std::uint32_t generation = header(rows).generation;
  const std::uint64_t taken = region_.taken_bytes();
  pool_.release(rows, page);
  EXPECT_EQ(region_.taken_bytes(), taken - kExtentBytes) << "its memory goes back at once";
  EXPECT_NE(*pool_.allocate(BufferPool::class_of(kExtentBytes)), rows);
  EXPECT_EQ(*pool_.allocate(page), rows);
  EXPECT_GT(header(rows).generation, generation);
  expect_balanced();
}

TEST_F(BufferPoolTest, AClassThatGrowsTakesExtents) {
  const SizeClass cls = BufferPool::class_of(4096);
  const std::uint64_t in_slabs = kSlabsMax * buffers_per_slab(cls);
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t i = 0; i < in_slabs; ++i) offsets.push_back(*pool_.allocate(cls));
  EXPECT_EQ(region_.taken_bytes(), kExtentBytes + kSlabsMax * kSlabBytes);
  for (std::uint32_t i = 0; i < buffers_per_extent(cls); ++i) {
    offsets.push_back(*pool_.allocate(cls));
  }
  EXPECT_EQ(region_.taken_bytes(), 2 * kExtentBytes + kSlabsMax * kSlabBytes);
  for (const std::uint64_t offset : offsets) pool_.release(offset, cls);
  pool_.trim();
  EXPECT_EQ(extents_taken(), 0u);
  expect_balanced();
}

TEST_F(BufferPoolTest, FailsOnceWhenTold) {
  EXPECT_FALSE(pool_.failure_pending());
  pool_.fail_after(1);
  EXPECT_TRUE(pool_.allocate(kNode));
  EXPECT_TRUE(pool_.failure_pending());
  EXPECT_EQ(pool_.allocate(kNode).error().code, Code::out_of_memory);
  EXPECT_FALSE(pool_.failure_pending());
  EXPECT_TRUE(pool_.allocate(kNode));
  pool_.fail_after(0);
  pool_.fail_after(-1);
  EXPECT_TRUE(pool_.allocate(kNode));
  EXPECT_EQ(pool_.stats(kNode).in_use, 3u);
}

TEST_F(BufferPoolTest, FailsFromThereOnWhenTold) {
  BufferCache cache(pool_);
  pool_.fail_from(1);
  EXPECT_TRUE(pool_.allocate(kNode));
  EXPECT_TRUE(pool_.failure_pending());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(pool_.allocate(kNode).error().code, Code::out_of_memory);
    EXPECT_EQ(cache.allocate(kNode).error().code, Code::out_of_memory);
    EXPECT_FALSE(pool_.failure_pending());
  }
  pool_.fail_after(0);  // once again, and no longer for good
  EXPECT_FALSE(pool_.allocate(kNode));
  EXPECT_TRUE(pool_.allocate(kNode));
  EXPECT_EQ(pool_.stats(kNode).in_use, 2u);
}

class SmallPoolTest : public BufferPoolTest {
 protected:
  SmallPoolTest() : BufferPoolTest(4) {}  // header and three
};

TEST_F(SmallPoolTest, AFullRegionIsAnErrorAndLosesNothing) {
  std::vector<std::uint64_t> offsets;
  for (;;) {
    const auto offset = pool_.allocate(kNode);
    if (!offset) {
      EXPECT_EQ(offset.error(), (Error{Code::out_of_memory, 0, 8}));
      break;
    }
    use(*offset, kNode);
    offsets.push_back(*offset);
  }
  EXPECT_EQ(offsets.size(), 3 * kPerExtent);
  EXPECT_FALSE(pool_.allocate(0));
  expect_balanced();
  pool_.release(offsets.back(), kNode);
  EXPECT_EQ(*pool_.allocate(kNode), offsets.back());
  for (const std::uint64_t offset : offsets) pool_.release(offset, kNode);
  pool_.trim();
  EXPECT_EQ(extents_taken(), 0u);
  EXPECT_TRUE(pool_.allocate(BufferPool::class_of(6 << 20)));
}

TEST_F(SmallPoolTest, WhatOtherClassesKeepForSoonIsUsedBeforeFailing) {
  for (const SizeClass cls : {BufferPool::class_of(1 << 20), kNode, node_class_of(512)}) {
    pool_.release(*pool_.allocate(cls), cls);
  }
  EXPECT_EQ(extents_taken(), 3u);
  EXPECT_TRUE(pool_.allocate(BufferPool::class_of(6 << 20)));
  expect_balanced();
}

TEST(BufferPool, GivesItsExtentsBackWhenItEnds) {
  Region region = *Region::reserve({.bytes_max = 64 << 20, .huge_pages = false});
  {
    BufferPool pool(region);
    ASSERT_TRUE(pool.allocate(0));
    ASSERT_TRUE(pool.allocate(kNode));
    ASSERT_TRUE(pool.allocate(kValueClasses - 1));
    EXPECT_EQ(region.taken_bytes(), (1 + 1 + 9) * kExtentBytes + kSlabBytes);
  }
  EXPECT_EQ(region.taken_bytes(), kExtentBytes);
}

// Against a model: live buffers never overlap, no pair of offset and generation comes twice,
// headers are as promised, numbers add up, and nothing remains.
TEST_F(BufferPoolTest, ModelOfRandomUse) {
  base::Random random(base::seed_from_environment(20240607));
  const auto below = [&](std::uint64_t n) { return random() % n; };
  struct Live {
    SizeClass cls;
    std::uint32_t generation;
  };
  std::map<std::uint64_t, Live> live;
  std::unordered_set<std::uint64_t> refs;
  for (int step = 0; step < 60000; ++step) {
    // Waves, so that extents fill and empty.
    const bool grow = below(100) < (step / 5000 % 2 == 0 ? 70u : 30u);
    if (grow || live.empty()) {
      const SizeClass some[] = {0, 3, 7, kNode, 20, 30, 39, 40, 42, 50, 57, 58, 59};
      const SizeClass cls = some[below(below(8) == 0 ? std::size(some) : 5)];
      const auto offset = pool_.allocate(cls);
      if (!offset) {
        ASSERT_EQ(offset.error().code, Code::out_of_memory);
        continue;
      }
      const wire::BufferHeader h = header(*offset);
      ASSERT_EQ(h.superseded, 0u);
      ASSERT_NE(h.generation & wire::kGenerationMask, 0u);
      ASSERT_TRUE(refs.insert(wire::Ref::make(*offset, h.generation).bits).second);
      ASSERT_NO_FATAL_FAILURE(keeps_its_places(*offset, cls));
      const auto next = live.lower_bound(*offset);
      ASSERT_TRUE(next == live.end() || *offset + class_bytes(cls) <= next->first);
      ASSERT_TRUE(next == live.begin() ||
                  std::prev(next)->first + class_bytes(std::prev(next)->second.cls) <= *offset);
      live.emplace(*offset, Live{cls, h.generation});
      set_header(*offset, {1, h.generation, 1, wire::kLive});
    } else {
      auto victim = live.lower_bound(below(region_.bytes()));
      if (victim == live.end()) victim = live.begin();
      ASSERT_EQ(header(victim->first).generation, victim->second.generation);
      pool_.release(victim->first, victim->second.cls);
      ASSERT_EQ(header(victim->first).superseded, 0u);
      live.erase(victim);
    }
    if (step % 1000 == 0) {
      expect_balanced();
      if (below(4) == 0) pool_.trim();
    }
  }
  for (const auto& [offset, one] : live) pool_.release(offset, one.cls);
  pool_.trim();
  expect_balanced();
  EXPECT_EQ(extents_taken(), 0u);
}

// Every block of all extents in use, under every generation that is near: only what was handed out,
// filled and not released is there, and only as what it is.
TEST_F(BufferPoolTest, KnowsWhereBuffersBegin) {
  struct Use {
    SizeClass cls;
    std::uint32_t generation;
  };
  std::map<std::uint64_t, Use> used;
  std::vector<std::pair<std::uint64_t, SizeClass>> released;
  const SizeClass classes[] = {0,
                               3,
                               20,
                               39,
                               41,
                               kNode,
                               node_class_of(512),
                               kTableClass,
                               kTableClass + 2,
                               kRelationClass,
                               kRelationClass + 2};
  for (const SizeClass cls : classes) {
    for (int i = 0; i < 6; ++i) {
      const std::uint64_t offset = *pool_.allocate(cls);
      EXPECT_FALSE(pool_.is_buffer_begin(offset, kind_of(cls), header(offset).generation))
          << "not filled yet";
      use(offset, cls);  // bytes of a value may look like anything
      used[offset] = {cls, header(offset).generation};
      if (i % 2 == 1) released.emplace_back(offset, cls);
    }
  }
  for (const auto& [offset, cls] : released) {
    pool_.release(offset, cls);
    used.erase(offset);
  }
  std::uint64_t found = 0;
  for (std::uint64_t offset = 0; offset < region_.end_offset() + kExtentBytes;
       offset += wire::kBlockBytes) {
    const auto use = used.find(offset);
    for (const BufferKind kind :
         {BufferKind::value, BufferKind::node, BufferKind::table, BufferKind::relation}) {
      for (std::uint32_t generation = 0; generation < 4; ++generation) {
        const bool expected = use != used.end() && kind == kind_of(use->second.cls) &&
                              generation == use->second.generation;
        ASSERT_EQ(pool_.is_buffer_begin(offset, kind, generation), expected)
            << offset << " generation " << generation;
        found += expected ? 1 : 0;
      }
    }
    ASSERT_FALSE(pool_.is_buffer_begin(offset + 8, BufferKind::node, 1));
  }
  EXPECT_EQ(found, used.size());
  for (const std::uint64_t outside :
       {region_.bytes(), region_.bytes() + 512, ~std::uint64_t{511}}) {
    EXPECT_FALSE(pool_.is_buffer_begin(outside, BufferKind::node, 1));
  }
  // References carry 28 bits of a generation.
  const auto& [offset, one] = *used.begin();
  EXPECT_TRUE(
      pool_.is_buffer_begin(offset, kind_of(one.cls), one.generation | (std::uint32_t{1} << 28)));
}

TEST_F(BufferPoolTest, NothingBeginsWhereMemoryWasGivenBack) {
  const SizeClass large = BufferPool::class_of(3 << 20);
  for (const SizeClass cls : {large, kNode, SizeClass{0}}) {
    const std::uint64_t offset = *pool_.allocate(cls);
    use(offset, cls);
    const std::uint32_t generation = header(offset).generation;
    EXPECT_TRUE(pool_.is_buffer_begin(offset, kind_of(cls), generation));
    pool_.release(offset, cls);
    pool_.trim();
    for (std::uint32_t any = 0; any < 4; ++any) {
      EXPECT_FALSE(pool_.is_buffer_begin(offset, kind_of(cls), any));
    }
  }
  EXPECT_EQ(extents_taken(), 0u);
}

TEST_F(BufferPoolTest, RepackedBuffersPinNoUnitOfTheirOwn) {
  std::vector<std::uint64_t> offsets;
  for (std::uint32_t i = 0; i < 4 * kPerExtent; ++i) offsets.push_back(*pool_.allocate(kNode));
  std::vector<std::uint64_t> spare;  // some of each extent, and one extent is in use besides
  for (std::uint32_t i = 0; i < 4 * kPerExtent; ++i) {
    if (i % 50 == 0) {
      spare.push_back(offsets[i]);
    } else if (i >= 100) {
      pool_.release(offsets[i], kNode);
    }
  }
  pool_.trim();
  ASSERT_EQ(extents_taken(), 4u);
  const std::uint32_t generation = header(spare.back()).generation;
  const std::uint64_t moved = spare.back();
  pool_.repack(kNode, spare);
  pool_.trim();
  EXPECT_EQ(extents_taken(), 1u);
  EXPECT_EQ(pool_.stats(kNode).in_use, 98u + spare.size());
  expect_balanced();
  for (const std::uint64_t offset : spare) {
    EXPECT_EQ(offset / kExtentBytes, offsets[0] / kExtentBytes);
    EXPECT_EQ(header(offset).superseded, 0u);
    pool_.release(offset, kNode);
  }
  while (*pool_.allocate(kNode) != moved) continue;
  EXPECT_GT(header(moved).generation, generation);
}

TEST_F(BufferPoolTest, RepackingAllThereIsKeepsOneUnit) {
  for (const SizeClass cls : {kNode, SizeClass{2}, BufferPool::class_of(3 << 20)}) {
    std::vector<std::uint64_t> offsets;
    for (std::uint32_t i = 0; i < buffers_per_unit(cls); ++i) {
      offsets.push_back(*pool_.allocate(cls));
    }
    pool_.release(*pool_.allocate(cls), cls);  // a spare unit
    pool_.repack(cls, offsets);
    EXPECT_EQ(std::set(offsets.begin(), offsets.end()).size(), offsets.size());
    for (const std::uint64_t offset : offsets) pool_.release(offset, cls);
  }
  expect_balanced();
}

TEST_F(BufferPoolTest, TellsWhatIsFree) {
  EXPECT_EQ(pool_.free_bytes(), 0u);
  const std::uint64_t offset = *pool_.allocate(kNode);
  EXPECT_EQ(pool_.free_bytes(), (kPerExtent - 1) * 8192);
  pool_.release(offset, kNode);
  EXPECT_EQ(pool_.free_bytes(), kPerExtent * 8192);
  pool_.trim();
  EXPECT_EQ(pool_.free_bytes(), 0u);
}

using BufferPoolDeathTest = BufferPoolTest;

TEST_F(BufferPoolDeathTest, MistakesAreAsserted) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fork has no memory of the region
  const std::uint64_t offset = *pool_.allocate(kNode);
  ASSERT_TRUE(pool_.allocate(kNode));
  EXPECT_DEATH(pool_.release(offset, kNode - 1), "== cls");
  EXPECT_DEATH(pool_.release(offset + 512, kNode), "class_bytes");
  EXPECT_DEATH((void)pool_.allocate(kClasses), "kClasses");
  const auto twice = [&] {
    for (int i = 0; i < 3; ++i) pool_.release(offset, kNode);
  };
  EXPECT_DEATH(twice(), "free_count");
}

TEST(BufferPoolConcurrency, NoBufferHasTwoOwners) {
  Region region = *Region::reserve({.bytes_max = 64 << 20, .huge_pages = false});
  BufferPool pool(region);
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 1; thread <= 3; ++thread) {
    threads.emplace_back([&pool, thread] {
      std::vector<std::pair<std::uint64_t, SizeClass>> mine;
      base::Random random(thread);
      for (int step = 0; step < 3000; ++step) {
        if (random() % 2 == 0 || mine.empty()) {
          const SizeClass cls = static_cast<SizeClass>(random() % 4) * 13;  // 0, 13, 26, 39: values
          const auto offset = pool.allocate(cls);
          if (!offset) continue;
          std::memcpy(pool.at(*offset) + sizeof(wire::BufferHeader), &thread, sizeof(thread));
          mine.emplace_back(*offset, cls);
        } else {
          std::swap(mine[random() % mine.size()], mine.back());
          const auto [offset, cls] = mine.back();
          mine.pop_back();
          std::uint64_t owner = 0;
          std::memcpy(&owner, pool.at(offset) + sizeof(wire::BufferHeader), sizeof(owner));
          ASSERT_EQ(owner, thread);
          pool.release(offset, cls);
        }
        if (step % 500 == 0) pool.trim();
      }
      for (const auto& [offset, cls] : mine) pool.release(offset, cls);
    });
  }
  for (std::thread& thread : threads) thread.join();
  pool.trim();
  EXPECT_EQ(region.taken_bytes(), kExtentBytes);
}

}  // namespace
}  // namespace espalier::memory

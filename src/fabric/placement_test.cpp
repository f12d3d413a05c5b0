// SPDX-License-Identifier: Apache-2.0
#include "fabric/placement.hpp"

#include <gtest/gtest.h>

#include "fabric/region_table.hpp"

namespace espalier::fabric {
namespace {

using enum MemoryKind;
using enum PlacementPolicy;

constexpr Placement kPastCache{persistent, true};
constexpr Placement kInCache{persistent, false};

/// As if memory began at 0.
const std::byte* at(std::uintptr_t address) { return reinterpret_cast<const std::byte*>(address); }

TEST(Placement, APolicyDecidesByTheKindOfMemory) {
  EXPECT_FALSE(placement_of(volatile_memory, adaptive).past_cache);
  EXPECT_TRUE(placement_of(persistent, adaptive).past_cache);
  EXPECT_FALSE(placement_of(volatile_memory, cache).past_cache);
  EXPECT_FALSE(placement_of(persistent, cache).past_cache);
  EXPECT_TRUE(placement_of(volatile_memory, memory).past_cache);
  EXPECT_TRUE(placement_of(persistent, memory).past_cache);
  EXPECT_TRUE(placement_of(persistent, adaptive).is_durable());
  EXPECT_FALSE(placement_of(persistent, cache).is_durable());
  EXPECT_FALSE(placement_of(volatile_memory, memory).is_durable());
  EXPECT_TRUE(placement_of(volatile_memory, adaptive).is_ordinary());
}

TEST(Placement, GranulesAreCountedAsAMediumCombinesThem) {
  PlacedCounter counter;
  counter.count(at(4096), 1, kPastCache);
  EXPECT_EQ(counter.counts().granules, 1u);
  counter.count(at(4097), 255, kPastCache);  // in the same one
  EXPECT_EQ(counter.counts().granules, 1u);
  counter.count(at(4352), 256, kPastCache);
  EXPECT_EQ(counter.counts().granules, 2u);
  counter.count(at(4607), 2, kPastCache);  // goes on in that one, and ends in the next
  EXPECT_EQ(counter.counts().granules, 3u);
  counter.count(at(4352), 1, kPastCache);  // back: another one was written meanwhile
  EXPECT_EQ(counter.counts().granules, 4u);
  counter.count(at(8191), 1 + 512 + 1, kPastCache);
  EXPECT_EQ(counter.counts().granules, 8u);
  EXPECT_EQ(counter.counts().persistent_bytes, 1u + 255 + 256 + 2 + 1 + 514);
  EXPECT_EQ(counter.counts().past_cache_bytes, counter.counts().persistent_bytes);
  EXPECT_EQ(counter.counts().cached_lines, 0u);
}

TEST(Placement, LinesOfTheCacheMayEachCostAGranule) {
  PlacedCounter counter;
  counter.count(at(4096), 64, kInCache);
  counter.count(at(4160), 64, kInCache);
  counter.count(at(4096 + 63), 2, kInCache);
  EXPECT_EQ(counter.counts().cached_lines, 4u);
  EXPECT_EQ(counter.counts().granules, 0u);
  EXPECT_EQ(counter.counts().past_cache_bytes, 0u);
  EXPECT_DOUBLE_EQ(counter.counts().write_amplification(), 4 * 256.0 / 130);
}

TEST(Placement, VolatileMemoryHasNoGranules) {
  PlacedCounter counter;
  counter.count(at(64), 100, {volatile_memory, false});
  counter.count(at(64), 100, {volatile_memory, true});
  EXPECT_EQ(counter.counts().past_cache_bytes, 100u);
  EXPECT_EQ(counter.counts().persistent_bytes, 0u);
  EXPECT_EQ(counter.counts().write_amplification(), 0);
}

TEST(Placement, PersistentMemoryIsOfferedWithoutAtomics) {
  const auto table = *RegionTable::create(7);
  std::byte bytes[64];
  OfferedMemory offered{bytes, sizeof bytes};
  offered.kind = persistent;
  const auto refused = table->offer(offered, RemoteRights::read | RemoteRights::atomic);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::invalid_argument);
  EXPECT_TRUE(table->offer(offered, RemoteRights::read | RemoteRights::write));
}

// A policy is that of regions offered from then on; what is granted decides as for find().
TEST(Placement, ATableKnowsHowTheBytesOfARegionArePlaced) {
  const auto table = *RegionTable::create(7);
  RegionTable::Reader reader(*table);
  std::byte bytes[64];
  OfferedMemory offered{bytes, sizeof bytes};
  offered.kind = persistent;
  const auto target_of = [&](const Registration& region) {
    reader.enter();
    const WriteTarget target = reader.find_target(region.remote().key, region.remote().at(8), 8, 0);
    reader.leave();
    return target;
  };
  const auto before = *table->offer(offered, RemoteRights::write);
  table->set_placement_policy(cache);
  const auto behind = *table->offer(offered, RemoteRights::write);
  const auto unwritable = *table->offer(offered, RemoteRights::read);
  EXPECT_EQ(target_of(before).at, bytes + 8);
  EXPECT_EQ(target_of(before).placement, kPastCache);
  EXPECT_EQ(target_of(behind).placement, kInCache);
  EXPECT_FALSE(target_of(unwritable));
}

}  // namespace
}  // namespace espalier::fabric

// SPDX-License-Identifier: Apache-2.0
// A crash loses of persistent memory what its node's cache still has, and nothing else.
#include <gtest/gtest.h>

#include "fabric/sim/testing/persistent_checks.hpp"

namespace espalier::fabric::sim {
namespace {

constexpr int kCrashes = 60;

TEST(SimPersistent, WhatIsAcknowledgedOutlivesACrash) {
  const std::uint64_t seed = base::seed_from_environment(73);
  std::uint64_t acknowledged = 0;
  std::uint64_t lines_lost = 0;
  bool partly = false;
  for (int i = 0; i < kCrashes; ++i) {
    for (const PlacementPolicy policy : {PlacementPolicy::adaptive, PlacementPolicy::memory}) {
      const PersistentRun run = crash_under_writes(seed + static_cast<std::uint64_t>(i), policy);
      EXPECT_EQ(run.lost, "") << "seed " << seed + static_cast<std::uint64_t>(i);
      acknowledged += run.acknowledged;
      lines_lost += run.lines_lost;
      partly |= run.partly;
    }
  }
  EXPECT_GT(acknowledged, 100u);
  EXPECT_GT(lines_lost, 0u);  // of WRITEs under way
  EXPECT_TRUE(partly);
}

TEST(SimPersistent, WhatWasStoredThroughTheCacheIsLost) {
  const std::uint64_t seed = base::seed_from_environment(74);
  int lost = 0;
  for (int i = 0; i < kCrashes; ++i) {
    const auto run =
        crash_under_writes(seed + static_cast<std::uint64_t>(i), PlacementPolicy::cache);
    lost += run.lost.empty() ? 0 : 1;
  }
  EXPECT_GT(lost, kCrashes / 2);
}

TEST(SimPersistent, TheSameSeedLosesTheSame) {
  const std::uint64_t seed = base::seed_from_environment(75);
  const auto once = crash_under_writes(seed, PlacementPolicy::cache);
  const auto again = crash_under_writes(seed, PlacementPolicy::cache);
  EXPECT_EQ(once.lost, again.lost);
  EXPECT_EQ(once.lines_lost, again.lines_lost);
  EXPECT_EQ(once.acknowledged, again.acknowledged);
}

// A line that was made durable since by another endpoint's WRITE is not taken back.
TEST(SimPersistent, EndpointsOfANodeShareItsCache) {
  World world(base::seed_from_environment(76));
  world.faults().cache_loss = 1;
  const auto client = world.add_node("client");
  const auto first = world.add_node("node");
  const auto table = *RegionTable::create(5);
  const auto one = world.add_endpoint("node", table);
  const auto other = world.add_endpoint("node", table);
  Words memory{};
  OfferedMemory offered{reinterpret_cast<std::byte*>(memory.data()), sizeof memory};
  offered.kind = MemoryKind::persistent;
  table->set_placement_policy(PlacementPolicy::cache);
  const Registration in_cache = *table->offer(offered, RemoteRights::write);
  ASSERT_TRUE(one->listen("one"));
  ASSERT_TRUE(other->listen("other"));
  End ends[] = {End(*client), End(*client), End(*one), End(*other)};
  ASSERT_TRUE(connect(world, ends[0], ends[2], "one"));
  ASSERT_TRUE(connect(world, ends[1], ends[3], "other"));
  Words out{};
  for (std::size_t i = 0; i < 2; ++i) {
    out.fill(i + 1);
    ends[i].pair->post(WorkRequest::write(i, std::as_bytes(std::span(out)), in_cache.remote().key,
                                          in_cache.remote().at(0)));
    ASSERT_TRUE(ends[i].wait_completed(world, 1));
  }
  EXPECT_EQ(memory[0], 2u);
  world.crash("node");
  EXPECT_EQ(memory, Words{});  // and not what the first of them had stored
}

// What has been given back is its owner's.
TEST(SimPersistent, ACrashTouchesNoMemoryThatWasGivenBack) {
  TwoEnds ends(base::seed_from_environment(77));
  ends.world.faults().cache_loss = 1;
  ends.b_endpoint->regions().set_placement_policy(PlacementPolicy::cache);
  Words memory{};
  OfferedMemory offered{reinterpret_cast<std::byte*>(memory.data()), sizeof memory};
  offered.kind = MemoryKind::persistent;
  Registration region = *ends.b_endpoint->regions().offer(offered, RemoteRights::write);
  ASSERT_TRUE(ends.connect());
  Words out{};
  out.fill(3);
  ends.a.pair->post(WorkRequest::write(1, std::as_bytes(std::span(out)), region.remote().key,
                                       region.remote().at(0)));
  ASSERT_TRUE(ends.a.wait_completed(ends.world, 1));
  region.revoke();
  ends.world.crash("b");
  EXPECT_EQ(memory, out);
}

}  // namespace
}  // namespace espalier::fabric::sim

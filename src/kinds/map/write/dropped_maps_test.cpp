// SPDX-License-Identifier: Apache-2.0
// Maps that were dropped (store/dropped_objects.hpp).
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "kinds/map/testing/dropped_maps_checks.hpp"
#include "kinds/map/testing/map_objects.hpp"

namespace espalier::tree {
namespace {

TEST(DroppedMaps, OneThatALeaseMayReadWaits) { EXPECT_TRUE(waits_for_a_lease()); }

TEST(DroppedMaps, WithoutLeasesMemoryGoesBackAtOnce) {
  DroppedMapUnderTest under;
  under.drop();
  EXPECT_TRUE(under.freed());
  EXPECT_EQ(under.store.dropped.size(), 0u);
}

TEST(DroppedMaps, ALeaseThatCameOrWasRenewedLaterHoldsNothingBack) {
  DroppedMapUnderTest under;
  const auto early = under.store.leases.grant(1, 0);
  under.drop();
  const auto late = under.store.leases.grant(2, 0);
  EXPECT_GT(late.epoch, early.epoch);
  EXPECT_FALSE(under.store.dropped.due());
  // Its walks are younger than the drop from here on.
  ASSERT_TRUE(under.store.leases.renew(early.id, late.epoch, 1));
  EXPECT_TRUE(under.store.dropped.due());
  under.store.dropped.collect();
  EXPECT_TRUE(under.freed());
}

TEST(DroppedMaps, WhatStillWaitsGoesWithTheStore) {
  DroppedMapUnderTest under;
  const auto lease = under.store.leases.grant(1, 0);
  under.drop();
  EXPECT_EQ(under.store.dropped.size(), 1u);
  under.store.leases.end(lease.id);
}

TEST_F(MapObjects, ADroppedMapIsFreedInSteps) {
  store_.dropped.free_in_steps(true);
  const std::uint64_t before = buffers_in_use(store_);
  {
    ThreadContext context(store_, std::move(*store_.epochs.join()), 0);
    MapUser user(context, *create("name", options_));
    const std::string value(200, 'v');  // out of line, some of them
    for (int i = 0; i < 20'000; ++i) {
      ASSERT_TRUE(user.put("key " + std::to_string(i), i % 2 == 0 ? value : "v").ok);
    }
    ASSERT_TRUE(drop("name"));
  }
  ASSERT_EQ(store_.dropped.size(), 1u) << "the thread that dropped it does not free it";
  ASSERT_TRUE(store_.dropped.due());
  std::uint64_t waiting = store_.dropped.bytes();
  int steps = 1;
  for (; store_.dropped.collect_some(4); ++steps) {
    ASSERT_LT(store_.dropped.bytes(), waiting);
    waiting = store_.dropped.bytes();
  }
  EXPECT_GT(steps, 50);
  EXPECT_EQ(store_.dropped.size(), 0u);
  EXPECT_EQ(store_.dropped.bytes(), 0u);
  EXPECT_EQ(buffers_in_use(store_), before);
  EXPECT_FALSE(store_.dropped.collect_some(4));
}

TEST(DroppedMaps, TheStoreMayEndInTheMiddle) {
  DroppedMapUnderTest under;
  under.store.dropped.free_in_steps(true);
  under.drop();
  EXPECT_FALSE(under.freed());
  under.store.dropped.collect();
  EXPECT_TRUE(under.freed());
}

}  // namespace
}  // namespace espalier::tree

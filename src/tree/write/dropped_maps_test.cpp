// SPDX-License-Identifier: Apache-2.0
#include "tree/write/dropped_maps.hpp"

#include <gtest/gtest.h>

#include "tree/testing/dropped_maps_checks.hpp"

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

}  // namespace
}  // namespace espalier::tree

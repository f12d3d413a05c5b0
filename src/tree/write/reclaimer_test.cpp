// SPDX-License-Identifier: Apache-2.0
#include "tree/write/reclaimer.hpp"

#include <gtest/gtest.h>

#include "tree/testing/reclaimer_checks.hpp"

namespace espalier::tree {
namespace {

std::uint64_t released_version(MapCore& map) {
  const std::uint64_t version = map.clock.take();
  map.clock.done(version);
  return version;
}

TEST(Reclaimer, WaitsForTheReleaseOfTheEndingVersion) { EXPECT_TRUE(waits_for_the_release()); }

TEST(Reclaimer, KeepsWhatSnapshotsNeed) { EXPECT_TRUE(keeps_what_snapshots_need()); }

TEST(Reclaimer, WaitsForReadersThatWereThereBefore) {
  ReclaimerUnderTest under;
  auto reader = std::move(*under.tree.store().epochs.join());
  reader.enter();
  const std::uint64_t offset = under.retire(released_version(under.tree.map()));
  under.collect();
  EXPECT_FALSE(under.freed(offset));
  reader.exit();
  reader.enter();  // came after the buffer was unlinked: holds nothing back
  under.collect();
  EXPECT_TRUE(under.freed(offset));
  reader.exit();
}

TEST(Reclaimer, ANewerSnapshotHoldsNothingBack) {
  ReclaimerUnderTest under;
  MapCore& map = under.tree.map();
  const std::uint64_t version = released_version(map);
  const auto held = under.reclaimer().hold(map, version);
  const std::uint64_t offset = under.retire(version);
  under.collect();
  EXPECT_TRUE(under.freed(offset));
  under.reclaimer().drop(map, held);
}

TEST(Reclaimer, TheOldestSnapshotDecides) {
  ReclaimerUnderTest under;
  MapCore& map = under.tree.map();
  const auto newer = under.reclaimer().hold(map, map.clock.released());
  const std::uint64_t version = released_version(map);
  // Registered late, by somebody who read the version early.
  const auto older = under.reclaimer().hold(map, 0);
  const std::uint64_t offset = under.retire(version);
  under.collect();
  under.reclaimer().drop(map, newer);
  under.collect();
  EXPECT_FALSE(under.freed(offset));
  EXPECT_EQ(under.reclaimer().waiting(map, false).snapshots, 1u);
  under.reclaimer().drop(map, older);
  under.collect();
  EXPECT_TRUE(under.freed(offset));
}

TEST(Reclaimer, ExpiresTheOldestSnapshotBeyondTheLimit) {
  ReclaimerUnderTest under({.snapshot_bytes_max = 3 * 8192});
  MapCore& map = under.tree.map();
  const auto first = under.reclaimer().hold(map, map.clock.released());
  std::vector<std::uint64_t> offsets;
  for (int i = 0; i < 2; ++i) offsets.push_back(under.retire(released_version(map)));
  const auto second = under.reclaimer().hold(map, map.clock.released());
  under.collect();
  EXPECT_FALSE(first->expired);
  for (int i = 0; i < 2; ++i) offsets.push_back(under.retire(released_version(map)));
  under.collect();
  EXPECT_TRUE(first->expired);
  EXPECT_FALSE(second->expired);
  EXPECT_TRUE(under.freed(offsets[0]) && under.freed(offsets[1])) << "only the first needed them";
  EXPECT_FALSE(under.freed(offsets[2]) || under.freed(offsets[3]));
  under.reclaimer().drop(map, first);
  under.reclaimer().drop(map, second);
  under.collect();
  EXPECT_TRUE(under.freed(offsets[2]) && under.freed(offsets[3]));
}

TEST(Reclaimer, ExpiresTheOldestOfAllMapsBeyondTheShareOfTheStore) {
  constexpr std::uint64_t kBuffers = 1024;  // of 8 KiB: a quarter of the store
  ReclaimerUnderTest under({}, kBuffers * 8192 * Reclaimer::kSnapshotShare);
  MapCore& map = under.tree.map();
  auto other = std::move(*MapCore::create(under.tree.store(), 2, "other", {}));
  const auto retire_in = [&](MapCore& in) {
    const std::uint64_t offset = *under.tree.context().cache.allocate(in.node_class);
    const std::uint64_t version = released_version(in);
    go_live(in.at(offset), version);
    under.retire(in, {offset, version, in.node_class, 0});
    return offset;
  };
  // The older one's version is higher: versions of two maps say nothing about what came first.
  for (int i = 0; i < 10; ++i) released_version(*other);
  const auto older = under.reclaimer().hold(*other, other->clock.released());
  const auto newer = under.reclaimer().hold(map, map.clock.released());
  const std::uint64_t offset_older = retire_in(*other);
  const std::uint64_t offset_newer = retire_in(map);
  for (std::uint64_t i = 2; i < kBuffers; ++i) retire_in(map);
  under.collect();
  EXPECT_EQ(under.reclaimer().snapshots().bytes, kBuffers * 8192);
  EXPECT_EQ(under.reclaimer().snapshots().bytes_max, kBuffers * 8192);
  EXPECT_FALSE(older->expired || newer->expired);
  retire_in(map);
  under.collect();
  EXPECT_TRUE(older->expired);
  EXPECT_FALSE(newer->expired);
  EXPECT_TRUE(under.freed(offset_older));
  EXPECT_FALSE(under.freed(offset_newer));
  EXPECT_EQ(under.reclaimer().snapshots().count, 1u);
  EXPECT_EQ(under.reclaimer().snapshots().expired, 1u);
  under.reclaimer().drop(*other, older);
  under.reclaimer().drop(map, newer);
  under.collect();
  EXPECT_TRUE(under.freed(offset_newer));
  EXPECT_EQ(under.reclaimer().snapshots().bytes, 0u);
  other.reset();
}

TEST(Reclaimer, ExpiresTheOldestSnapshotsForWritesThatFindNoMemory) {
  EXPECT_TRUE(gives_what_snapshots_hold());
}

TEST(Reclaimer, KeepsWhatWalksAtExpiringVersionsRead) {
  EXPECT_TRUE(keeps_what_walks_at_expiring_versions_read());
}

TEST(Reclaimer, KeepsWhatIsPinned) { EXPECT_TRUE(keeps_what_is_pinned()); }

TEST(Reclaimer, AWalkAtAnExpiredVersionIsRefused) { EXPECT_TRUE(refuses_expired_versions()); }

// What was expired waits for a reader: nothing is gained by expiring the next.
TEST(Reclaimer, ExpiresNoMoreWhileAReaderHoldsWhatTheLastOneHeld) {
  ReclaimerUnderTest under;
  MapCore& map = under.tree.map();
  const auto retire_some = [&] {
    std::uint64_t offset = 0;
    for (int i = 0; i < 128; ++i) offset = under.retire(released_version(map));
    return offset;
  };
  const auto first = under.reclaimer().hold(map, map.clock.released());
  const std::uint64_t of_first = retire_some();
  const auto second = under.reclaimer().hold(map, map.clock.released());
  const std::uint64_t of_second = retire_some();
  under.collect();
  auto reader = std::move(*under.tree.store().epochs.join());
  reader.enter();
  EXPECT_TRUE(under.reclaimer().expire_oldest());
  EXPECT_TRUE(first->expired);
  under.collect();
  EXPECT_FALSE(under.freed(of_first));
  EXPECT_TRUE(under.reclaimer().waits_for_snapshots());
  EXPECT_FALSE(under.reclaimer().expire_oldest());
  reader.exit();
  under.collect();
  EXPECT_TRUE(under.freed(of_first));
  EXPECT_FALSE(second->expired || under.freed(of_second));
  EXPECT_TRUE(under.reclaimer().expire_oldest());
  under.collect();
  EXPECT_TRUE(second->expired && under.freed(of_second));
  under.reclaimer().drop(map, first);
  under.reclaimer().drop(map, second);
  under.collect();
  EXPECT_FALSE(under.reclaimer().waits_for_snapshots());
}

TEST(Reclaimer, ReleasesLidsWithTheirBuffers) {
  ReclaimerUnderTest under;
  MapCore& map = under.tree.map();
  ASSERT_TRUE(map.table.reserve(1));
  const wire::Lid lid = map.table.allocate();
  const std::uint64_t offset = *under.tree.context().cache.allocate(map.node_class);
  map.table.set(lid, map.ref_of(map.at(offset)), 0);
  const std::uint64_t version = released_version(map);
  const Retired retired{offset, version, map.node_class, lid};
  under.retire(map, retired);
  const auto waiting = under.reclaimer().waiting(map, true);
  EXPECT_EQ(waiting.lids, 1u);
  EXPECT_EQ(waiting.bytes, 8192u);
  ASSERT_EQ(waiting.buffers.size(), 1u);
  EXPECT_EQ(waiting.buffers[0].offset, offset);
  const std::uint64_t in_use = map.table.in_use();
  under.collect();
  EXPECT_EQ(map.table.in_use(), in_use - 1);
  EXPECT_FALSE(map.table.get(lid));
  EXPECT_EQ(under.reclaimer().waiting(map, true).buffers.size(), 0u);
}

TEST(Reclaimer, IsDueAfterAHandful) {
  ReclaimerUnderTest under;
  EXPECT_FALSE(under.reclaimer().due());
  for (std::uint32_t i = 0; i < Reclaimer::kDue; ++i)
    under.retire(released_version(under.tree.map()));
  EXPECT_TRUE(under.reclaimer().due());
  under.collect();
  EXPECT_FALSE(under.reclaimer().due());
}

TEST(Reclaimer, IsDueAtOnceAfterALargeValue) {
  ReclaimerUnderTest under;
  constexpr auto kLarge = memory::BufferPool::class_of(Reclaimer::kDueBytes);
  const auto offset = under.tree.map().store.pool.allocate(kLarge);
  ASSERT_TRUE(offset);
  const Retired value{*offset, released_version(under.tree.map()), kLarge, 0};
  under.retire(under.tree.map(), value);
  EXPECT_TRUE(under.reclaimer().due());
  under.collect();
  EXPECT_FALSE(under.reclaimer().due());
}

TEST(Reclaimer, ForgetsADroppedMapAndFreesItsBuffers) {
  ReclaimerUnderTest under;
  StoreCore& store = under.tree.store();
  auto other = std::move(*MapCore::create(store, 2, "other", {}));
  const auto held = under.reclaimer().hold(*other, 0);
  std::vector<std::uint64_t> offsets;
  for (int i = 0; i < 3; ++i) {  // held, stamped and unreleased ones
    const std::uint64_t version = i < 2 ? released_version(*other) : other->clock.take();
    offsets.push_back(*under.tree.context().cache.allocate(other->node_class));
    go_live(store.region.at(offsets.back()), version);
    const Retired retired{offsets.back(), version, other->node_class, 0};
    under.retire(*other, retired);
    if (i == 0) under.collect();
    if (i == 1) store.reclaimer.collect(under.tree.context().cache);
  }
  (void)held;
  other.reset();
  for (const std::uint64_t offset : offsets) EXPECT_TRUE(under.freed(offset));
  EXPECT_TRUE(audit_store(store).empty());
}

}  // namespace
}  // namespace espalier::tree

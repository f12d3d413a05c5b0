// SPDX-License-Identifier: Apache-2.0
#include "memory/reclaimer.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "memory/testing/reclaimer_checks.hpp"

namespace espalier::memory {
namespace {

TEST(Reclaimer, WaitsForTheReleaseOfTheEndingVersion) { EXPECT_TRUE(waits_for_the_release()); }

TEST(Reclaimer, KeepsWhatSnapshotsNeed) { EXPECT_TRUE(keeps_what_snapshots_need()); }

TEST(Reclaimer, WaitsForReadersThatWereThereBefore) {
  ReclaimerUnderTest under;
  auto reader = under.join();
  reader.enter();
  const std::uint64_t offset = under.retire(under.object.write());
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
  ObjectUnderTest& object = under.object;
  const std::uint64_t version = object.write();
  const auto held = under.reclaimer.hold(object, version);
  const std::uint64_t offset = under.retire(version);
  under.collect();
  EXPECT_TRUE(under.freed(offset));
  under.reclaimer.drop(object, held);
}

TEST(Reclaimer, TheOldestSnapshotDecides) {
  ReclaimerUnderTest under;
  ObjectUnderTest& object = under.object;
  const auto newer = under.reclaimer.hold(object, object.clock.released());
  const std::uint64_t version = object.write();
  // Registered late, by a reader that read the version early.
  const auto older = under.reclaimer.hold(object, 0);
  const std::uint64_t offset = under.retire(version);
  under.collect();
  under.reclaimer.drop(object, newer);
  under.collect();
  EXPECT_FALSE(under.freed(offset));
  EXPECT_EQ(under.reclaimer.waiting(object, false).snapshots, 1u);
  under.reclaimer.drop(object, older);
  under.collect();
  EXPECT_TRUE(under.freed(offset));
}

TEST(Reclaimer, ExpiresTheOldestSnapshotBeyondTheLimit) {
  ReclaimerUnderTest under(3 * 8192);
  ObjectUnderTest& object = under.object;
  const auto first = under.reclaimer.hold(object, object.clock.released());
  std::vector<std::uint64_t> offsets;
  for (int i = 0; i < 2; ++i) offsets.push_back(under.retire(object.write()));
  const auto second = under.reclaimer.hold(object, object.clock.released());
  under.collect();
  EXPECT_FALSE(first->expired);
  for (int i = 0; i < 2; ++i) offsets.push_back(under.retire(object.write()));
  under.collect();
  EXPECT_TRUE(first->expired);
  EXPECT_FALSE(second->expired);
  EXPECT_TRUE(under.freed(offsets[0]) && under.freed(offsets[1])) << "only the first needed them";
  EXPECT_FALSE(under.freed(offsets[2]) || under.freed(offsets[3]));
  under.reclaimer.drop(object, first);
  under.reclaimer.drop(object, second);
  under.collect();
  EXPECT_TRUE(under.freed(offsets[2]) && under.freed(offsets[3]));
}

TEST(Reclaimer, ExpiresTheOldestOfAllObjectsBeyondTheShareOfTheStore) {
  constexpr std::uint64_t kBuffers = 1024;  // of 8 KiB: a quarter of the store
  ReclaimerUnderTest under(kAmpleBytes, kBuffers * 8192 * Reclaimer::kSnapshotShare);
  ObjectUnderTest& object = under.object;
  ObjectUnderTest other(under.reclaimer, "other");
  const auto retire_in = [&](ObjectUnderTest& in) { return under.retire(in, in.write()); };
  // The older one's version is higher: versions of two objects say nothing about what came first.
  for (int i = 0; i < 10; ++i) other.write();
  const auto older = under.reclaimer.hold(other, other.clock.released());
  const auto newer = under.reclaimer.hold(object, object.clock.released());
  const std::uint64_t offset_older = retire_in(other);
  const std::uint64_t offset_newer = retire_in(object);
  for (std::uint64_t i = 2; i < kBuffers; ++i) retire_in(object);
  under.collect();
  EXPECT_EQ(under.reclaimer.snapshots().bytes, kBuffers * 8192);
  EXPECT_EQ(under.reclaimer.snapshots().bytes_max, kBuffers * 8192);
  EXPECT_FALSE(older->expired || newer->expired);
  retire_in(object);
  under.collect();
  EXPECT_TRUE(older->expired);
  EXPECT_FALSE(newer->expired);
  EXPECT_TRUE(under.freed(offset_older));
  EXPECT_FALSE(under.freed(offset_newer));
  EXPECT_EQ(under.reclaimer.snapshots().count, 1u);
  EXPECT_EQ(under.reclaimer.snapshots().expired, 1u);
  under.reclaimer.drop(other, older);
  under.reclaimer.drop(object, newer);
  under.collect();
  EXPECT_TRUE(under.freed(offset_newer));
  EXPECT_EQ(under.reclaimer.snapshots().bytes, 0u);
}

TEST(Reclaimer, ExpiresTheOldestSnapshotsForWritesThatFindNoMemory) {
  EXPECT_TRUE(gives_what_snapshots_hold());
}

TEST(Reclaimer, KeepsWhatWalksAtExpiringVersionsRead) {
  EXPECT_TRUE(keeps_what_walks_at_expiring_versions_read());
}

TEST(Reclaimer, KeepsWhatIsPinned) { EXPECT_TRUE(keeps_what_is_pinned()); }

TEST(Reclaimer, KeepsWhatLeasesNeed) { EXPECT_TRUE(keeps_what_leases_need()); }

// What was expired waits for a reader: nothing is gained by expiring the next.
TEST(Reclaimer, ExpiresNoMoreWhileAReaderHoldsWhatTheLastOneHeld) {
  ReclaimerUnderTest under;
  ObjectUnderTest& object = under.object;
  const auto retire_some = [&] {
    std::uint64_t offset = 0;
    for (int i = 0; i < 128; ++i) offset = under.retire(object.write());
    return offset;
  };
  const auto first = under.reclaimer.hold(object, object.clock.released());
  const std::uint64_t of_first = retire_some();
  const auto second = under.reclaimer.hold(object, object.clock.released());
  const std::uint64_t of_second = retire_some();
  under.collect();
  auto reader = under.join();
  reader.enter();
  EXPECT_TRUE(under.reclaimer.expire_oldest());
  EXPECT_TRUE(first->expired);
  under.collect();
  EXPECT_FALSE(under.freed(of_first));
  EXPECT_TRUE(under.reclaimer.waits_for_snapshots());
  EXPECT_FALSE(under.reclaimer.expire_oldest());
  reader.exit();
  under.collect();
  EXPECT_TRUE(under.freed(of_first));
  EXPECT_FALSE(second->expired || under.freed(of_second));
  EXPECT_TRUE(under.reclaimer.expire_oldest());
  under.collect();
  EXPECT_TRUE(second->expired && under.freed(of_second));
  under.reclaimer.drop(object, first);
  under.reclaimer.drop(object, second);
  under.collect();
  EXPECT_FALSE(under.reclaimer.waits_for_snapshots());
}

TEST(Reclaimer, ReleasesIdsWithTheirBuffers) {
  ReclaimerUnderTest under;
  ObjectUnderTest& object = under.object;
  const Retired retired{under.allocate(), object.write(), under.kClass, 7};
  under.retire(object, retired);
  const auto waiting = under.reclaimer.waiting(object, true);
  EXPECT_EQ(waiting.ids, 1u);
  EXPECT_EQ(waiting.bytes, 8192u);
  ASSERT_EQ(waiting.buffers.size(), 1u);
  EXPECT_EQ(waiting.buffers[0].offset, retired.offset);
  EXPECT_EQ(object.last_released_id, 0u);
  object.superseded = under.superseded(retired.offset);
  under.collect();
  EXPECT_EQ(object.last_released_id, 7u);
  EXPECT_TRUE(object.buffer_was_live) << "the id goes first";
  EXPECT_TRUE(under.freed(retired.offset));
  EXPECT_EQ(object.last_freed_class, under.kClass);
  EXPECT_EQ(under.reclaimer.waiting(object, true).buffers.size(), 0u);
}

// What an object frees itself counts where snapshots may hold no more.
TEST(Reclaimer, ReleasesIdsWithoutBuffersAndCountsTheirBytes) {
  ReclaimerUnderTest under(1000);
  const auto held = under.reclaimer.hold(under.object, under.object.clock.released());
  under.retire(under.object, {0, under.object.write(), 0, 7, 900});
  under.collect();
  EXPECT_EQ(under.object.last_released_id, 0u);
  EXPECT_EQ(under.reclaimer.snapshots().bytes, 900u);
  EXPECT_EQ(under.reclaimer.waiting(under.object, false).bytes, 900u);
  under.retire(under.object, {0, 0, 0, 8, 500});  // no snapshot needs it
  under.collect();
  EXPECT_EQ(under.object.last_released_id, 8u);
  EXPECT_FALSE(held->has_expired());
  under.retire(under.object, {0, under.object.write(), 0, 9, 200});
  under.collect();
  EXPECT_TRUE(held->has_expired());
  EXPECT_EQ(under.object.last_released_id, 9u);
  EXPECT_EQ(under.reclaimer.waiting(under.object, false).bytes, 0u);
  under.reclaimer.drop(under.object, held);
}

TEST(Reclaimer, OffersWhatHasComeFreeToItsObject) {
  ReclaimerUnderTest under;
  ObjectUnderTest& object = under.object;
  object.takes_freed = true;
  const std::uint64_t offset = under.retire(object.write());
  under.collect();
  EXPECT_EQ(object.taken, offset);
  under.cache.release(object.taken, under.kClass);
  EXPECT_EQ(under.pool.stats(under.kClass).in_use, 0u);
}

TEST(Reclaimer, IsDueAfterAHandful) {
  ReclaimerUnderTest under;
  EXPECT_FALSE(under.reclaimer.due());
  for (std::uint32_t i = 0; i < Reclaimer::kDue; ++i) under.retire(under.object.write());
  EXPECT_TRUE(under.reclaimer.due());
  under.collect();
  EXPECT_FALSE(under.reclaimer.due());
}

TEST(Reclaimer, IsDueAtOnceAfterALargeValue) {
  ReclaimerUnderTest under;
  constexpr auto kDueClass = class_of(Reclaimer::kDueBytes);
  const auto offset = under.pool.allocate(kDueClass);
  ASSERT_TRUE(offset);
  const Retired value{*offset, under.object.write(), kDueClass, 0};
  under.retire(under.object, value);
  EXPECT_TRUE(under.reclaimer.due());
  under.collect();
  EXPECT_FALSE(under.reclaimer.due());
}

TEST(Reclaimer, ForgetsADroppedObjectAndFreesItsBuffers) {
  ReclaimerUnderTest under;
  ObjectUnderTest other(under.reclaimer, "other");
  under.reclaimer.hold(other, 0);
  const std::uint64_t held = under.retire(other, other.write());
  under.collect();
  EXPECT_EQ(under.reclaimer.snapshots().bytes, 8192u);
  const Retired stamped{under.allocate(), other.write(), under.kClass, 7};
  {
    auto reader = under.join();
    reader.enter();  // before it is stamped: else one look at it makes it a held one
    under.retire(other, stamped);
    under.collect();
    reader.exit();
  }
  EXPECT_FALSE(under.freed(stamped.offset));
  EXPECT_EQ(under.reclaimer.snapshots().bytes, 8192u);
  EXPECT_TRUE(under.reclaimer.waits_for_readers());
  const std::uint64_t unreleased = under.retire(other, other.clock.take());
  EXPECT_EQ(other.last_released_id, 0u);

  under.reclaimer.forget(other);
  for (const std::uint64_t offset : {held, stamped.offset, unreleased}) {
    EXPECT_TRUE(under.freed(offset));
  }
  EXPECT_EQ(other.last_released_id, 7u);
  EXPECT_EQ(other.last_freed_class, kClasses) << "it is told of none";
  EXPECT_EQ(under.pool.stats(under.kClass).in_use, 0u);
  EXPECT_EQ(under.reclaimer.snapshots().bytes, 0u);
  EXPECT_FALSE(under.reclaimer.waits_for_readers());
}

TEST(ReclaimerDeathTest, AnObjectIsAddedOnceWithAnAttachedClock) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fork has no memory of the region
  ReclaimerUnderTest under;
  ObjectUnderTest& object = under.object;
  EXPECT_DEATH(under.reclaimer.add(object, "again", object.clock, 0), "failed: first");
  under.reclaimer.forget(object);
  const VersionClock detached;
  EXPECT_DEATH(under.reclaimer.add(object, "object", detached, 0), "failed: clock.attached");
  under.reclaimer.add(object, "object", object.clock, 0);
}

}  // namespace
}  // namespace espalier::memory

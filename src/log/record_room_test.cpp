// SPDX-License-Identifier: Apache-2.0
#include "log/record_room.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <optional>

namespace espalier::log {
namespace {

struct Waiter final : RoomWaiter {
  void complete(Result<std::span<std::byte>> room) noexcept override { got = room; }
  std::optional<Result<std::span<std::byte>>> got;
};

struct RecordRoomTest : ::testing::Test {
  /// Gives back what one that waited has got.
  void release(const Waiter& waiter) {
    ASSERT_TRUE(waiter.got && *waiter.got);
    room.release(QueuedRecord::of(**waiter.got));
  }
  RecordRoom room{1000, 5000};
};

TEST_F(RecordRoomTest, IsGivenInTurn) {
  const auto held = room.reserve(600);
  ASSERT_TRUE(held);
  EXPECT_EQ(room.reserve(600).error().code, Code::busy);
  Waiter first;
  Waiter second;
  room.wait(first, 600);
  room.wait(second, 10);
  EXPECT_FALSE(first.got);
  EXPECT_FALSE(second.got);                              // though there is room for it
  EXPECT_EQ(room.reserve(10).error().code, Code::busy);  // and for this
  room.release(QueuedRecord::of(*held));
  release(first);
  release(second);
  EXPECT_EQ(room.held_bytes(), 0u);
}

// Were those that need little let in before, it would wait as long as they come.
TEST_F(RecordRoomTest, OneLongerThanWhatMayBeHeldComesThroughOnceNothingIs) {
  std::optional held = room.reserve(100);
  Waiter longer;
  room.wait(longer, 4000);
  EXPECT_EQ(room.reserve(100).error().code, Code::busy);
  room.release(QueuedRecord::of(**held));
  ASSERT_TRUE(longer.got && *longer.got);
  EXPECT_EQ((*longer.got)->size(), 4000u);
  EXPECT_EQ(room.reserve(1).error().code, Code::busy);
  release(longer);
  held = room.reserve(100);
  ASSERT_TRUE(*held);
  room.release(QueuedRecord::of(**held));
}

// While short records retry, a long one is passed by at most as many bytes as may be held.
TEST_F(RecordRoomTest, ALongOneIsPassedByABoundedNumberOfShortOnes) {
  std::deque<std::span<std::byte>> held;
  const auto release_oldest = [&] {
    room.release(QueuedRecord::of(held.front()));
    held.pop_front();
  };
  while (const auto given = room.reserve(100)) held.push_back(*given);
  ASSERT_EQ(held.size(), 8u);
  ASSERT_EQ(room.reserve(500).error().code, Code::busy);
  std::size_t passed = 0;
  while (true) {
    release_oldest();
    const auto given = room.reserve(90);
    if (!given) break;
    held.push_back(*given);
    ASSERT_LT(++passed, 100u);
    EXPECT_FALSE(room.reserve(500));
  }
  EXPECT_EQ(passed, 11u);
  Result<std::span<std::byte>> longer = fail(Code::busy);
  while (!longer && !held.empty()) {
    EXPECT_EQ(room.reserve(90).error().code, Code::busy);
    release_oldest();
    longer = room.reserve(500);
  }
  ASSERT_TRUE(longer);
  EXPECT_FALSE(held.empty());
  release_oldest();
  held.push_back(room.reserve(90).value());  // nothing is claimed any more
  while (!held.empty()) release_oldest();
  room.release(QueuedRecord::of(*longer));
}

TEST_F(RecordRoomTest, AClaimThatNobodyTakesEnds) {
  RecordRoom soon(1000, 5000, 0);
  const auto held = soon.reserve(900);
  ASSERT_FALSE(soon.reserve(4000));
  soon.release(QueuedRecord::of(*held));
  for (int i = 0; i < 11; ++i) soon.release(QueuedRecord::of(soon.reserve(90).value()));
  EXPECT_FALSE(soon.reserve(90));
  Result<std::span<std::byte>> given = fail(Code::busy);
  for (int i = 0; !given && i < 1'000'000; ++i) given = soon.reserve(90);  // a clock must go on
  ASSERT_TRUE(given);
  EXPECT_EQ(soon.reserve(4000).error().code, Code::busy);  // and claims again
  soon.release(QueuedRecord::of(*given));
  soon.release(QueuedRecord::of(soon.reserve(4000).value()));
}

TEST_F(RecordRoomTest, AClaimIsNoneOfAPauseOrAnError) {
  room.pause(true);
  EXPECT_FALSE(room.reserve(900));
  room.pause(false);
  for (int i = 0; i < 100; ++i) room.release(QueuedRecord::of(room.reserve(90).value()));
  const auto held = room.reserve(900);
  EXPECT_EQ(room.reserve(500).error().code, Code::busy);
  room.refuse({Code::system, 0, 5});
  EXPECT_EQ(room.reserve(10).error(), (Error{Code::system, 0, 5}));
  room.release(QueuedRecord::of(*held));
}

TEST_F(RecordRoomTest, OneThatNeedNotWaitHasItNow) {
  Waiter waiter;
  room.wait(waiter, 100);
  EXPECT_FALSE(room.cancel(waiter));
  release(waiter);
  Waiter too_long;
  room.wait(too_long, 5001);
  EXPECT_EQ(too_long.got->error().code, Code::value_too_long);
}

TEST_F(RecordRoomTest, RecordsMayBeBoundMore) {
  room.bound_records(6000);
  EXPECT_EQ(room.reserve(5001).error().code, Code::value_too_long);
  room.bound_records(900);
  EXPECT_EQ(room.reserve(901).error().code, Code::value_too_long);
  Waiter too_long;
  room.wait(too_long, 901);
  EXPECT_EQ(too_long.got->error().code, Code::value_too_long);
  const auto held = room.reserve(900);
  ASSERT_TRUE(held);
  room.release(QueuedRecord::of(*held));
}

TEST_F(RecordRoomTest, ThoseBehindOneThatWaitsNoLongerMoveUp) {
  const auto held = room.reserve(600);
  Waiter first;
  Waiter second;
  room.wait(first, 600);
  room.wait(second, 10);
  EXPECT_TRUE(room.cancel(first));
  release(second);
  EXPECT_FALSE(first.got);
  room.release(QueuedRecord::of(*held));
}

TEST_F(RecordRoomTest, APauseIsWaitedFor) {
  room.pause(true);
  EXPECT_EQ(room.reserve(1).error().code, Code::busy);
  Waiter waiter;
  room.wait(waiter, 1);
  EXPECT_FALSE(waiter.got);
  room.pause(false);
  release(waiter);
}

TEST_F(RecordRoomTest, AnErrorReachesAllWhoWait) {
  const auto held = room.reserve(1000);
  Waiter first;
  Waiter second;
  room.wait(first, 600);
  room.wait(second, 10);
  const Error closed{Code::busy, 0, 7};
  room.refuse(closed);
  EXPECT_EQ(first.got->error(), closed);
  EXPECT_EQ(second.got->error(), closed);
  EXPECT_EQ(room.reserve(1).error(), closed);
  room.release(QueuedRecord::of(*held));
}

}  // namespace
}  // namespace espalier::log

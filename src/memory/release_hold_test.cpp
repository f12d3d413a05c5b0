// SPDX-License-Identifier: Apache-2.0
// Holds of releases: what they keep back, for how long, how often, and which thread ends them.
#include "memory/release_hold.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "memory/testing/release_hold_checks.hpp"

namespace espalier::memory {
namespace {

TEST(ReleaseHold, KeepsVersionsBack) { EXPECT_TRUE(a_hold_keeps_versions_back()); }

TEST(ReleaseHold, EndsByItself) { EXPECT_TRUE(a_hold_ends_by_itself()); }

TEST(ReleaseHold, StandsAFiftiethOfTheTimeAtMost) { EXPECT_TRUE(holds_are_seldom()); }

TEST(ReleaseHold, IsGrantedOnceInFiftyMilliseconds) {
  HeldClock clock;
  const std::uint64_t first = clock->hold();
  ASSERT_NE(first, 0u);
  EXPECT_EQ(clock->hold(), 0u);
  EXPECT_TRUE(clock->end_hold(first));
  EXPECT_EQ(clock->hold(), 0u);
  HeldClock::pass(ReleaseHold::kApartNs - 1);
  EXPECT_EQ(clock->hold(), 0u);
  HeldClock::pass(1);
  const std::uint64_t second = clock->hold();
  EXPECT_NE(second, 0u);
  EXPECT_NE(second, first);
}

TEST(ReleaseHold, IsEndedByItsOwnNumberOnly) {
  HeldClock clock;
  EXPECT_FALSE(clock->end_hold(0));
  EXPECT_FALSE(clock->end_hold(1));
  const std::uint64_t hold = clock->hold();
  const std::uint64_t written = clock.write();
  for (const std::uint64_t other : {std::uint64_t{0}, hold + 1, ~std::uint64_t{0}}) {
    EXPECT_FALSE(clock->end_hold(other));
    EXPECT_LT(clock->released(), written);
  }
  EXPECT_TRUE(clock->end_hold(hold));
  EXPECT_FALSE(clock->end_hold(hold));
  EXPECT_EQ(clock->released(), written);
}

// An overdue hold that no thread has ended keeps nothing from the next.
TEST(ReleaseHold, LeavesWhatItKeptToTheNext) {
  HeldClock clock;
  ASSERT_NE(clock->hold(), 0u);
  const std::uint64_t written = clock.write();
  HeldClock::pass(ReleaseHold::kApartNs);
  ASSERT_NE(clock->hold(), 0u);
  EXPECT_EQ(clock->released(), written);
  EXPECT_EQ(clock->released_now(), written);
  clock.write();
  EXPECT_EQ(clock->released(), written);
}

// Going on above versions that are missing waits until those before them are released, and leaves
// none behind.
TEST(ReleaseHold, GoingOnWaitsForItsEnd) {
  HeldClock clock;
  ASSERT_NE(clock->hold(), 0u);
  const std::uint64_t written = clock.write();
  std::atomic<bool> gone_on{false};
  std::thread other([&] {
    clock->go_on_above(written + 100);
    gone_on = true;
  });
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  EXPECT_FALSE(gone_on);
  HeldClock::pass(ReleaseHold::kLongestNs);
  other.join();
  EXPECT_EQ(clock->taken(), written + 100);
  EXPECT_EQ(clock->released(), written + 100);
  EXPECT_EQ(clock.write(), written + 101);
  EXPECT_EQ(clock->released(), written + 101);
}

// Writers that meet the end of a hold at any moment: whatever they finish is released, by them or
// by the thread that ends it.
TEST(ReleaseHoldConcurrency, NothingIsLeftBehind) {
  HeldClock clock;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> holds{0};
  std::thread holder([&] {
    while (!stop) {
      const std::uint64_t hold = clock->hold();
      if (hold == 0) {
        HeldClock::pass(ReleaseHold::kApartNs / 8);
        continue;
      }
      ++holds;
      if (hold % 2 == 0) std::this_thread::yield();
      if (hold % 3 != 0) static_cast<void>(clock->end_hold(hold));
      HeldClock::pass(ReleaseHold::kLongestNs);
    }
  });
  std::vector<std::thread> writers;
  std::atomic<std::uint64_t> written{0};
  for (int w = 0; w < 3; ++w) {
    writers.emplace_back([&] {
      // For as long as it takes the other thread to come to its first hold, too.
      for (int i = 0; i < 2'000 || holds == 0; ++i) {
        clock->admit();
        const std::uint64_t version = clock->take();
        clock->done(version);
        while (clock->released_now() < version) std::this_thread::yield();
        ++written;
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  stop = true;
  holder.join();
  EXPECT_GE(written, 6'000u);
  EXPECT_EQ(clock->released(), written);
  EXPECT_GT(holds, 0u);
}

}  // namespace
}  // namespace espalier::memory

// SPDX-License-Identifier: Apache-2.0
#include "memory/version_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "memory/testing/version_clock_checks.hpp"

namespace espalier::memory {
namespace {

TEST(VersionClock, CountsFromOneAndReleasesAtOnceWhenAlone) {
  ClockUnderTest under;
  EXPECT_EQ(under.clock.released(), 0u);
  for (std::uint64_t i = 1; i < 100; ++i) {
    under.clock.admit();
    ASSERT_EQ(under.clock.take(), i);
    ASSERT_EQ(under.clock.taken(), i);
    under.clock.done(i);
    ASSERT_EQ(under.clock.released(), i);
  }
}

TEST(VersionClock, ReleasesWaitForEarlierVersions) {
  EXPECT_TRUE(releases_wait_for_earlier_versions());
}

TEST(VersionClock, ReleasesWhateverTheOrder) {
  base::Random random(base::seed_from_environment(7));
  ClockUnderTest under;
  std::uint64_t base = 0;
  for (int round = 0; round < 100; ++round) {  // goes round the window several times
    std::vector<std::uint64_t> order(1 + random.below(200));
    for (std::uint64_t& version : order) version = under.clock.take();
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    std::vector<bool> done(order.size(), false);
    for (const std::uint64_t version : order) {
      under.clock.done(version);
      done[version - base - 1] = true;
      const auto open = std::find(done.begin(), done.end(), false);
      ASSERT_EQ(under.clock.released(), base + static_cast<std::uint64_t>(open - done.begin()));
    }
    base += order.size();
  }
}

TEST(VersionClock, WithoutVersionsEverythingIsVersionZero) {
  ClockUnderTest under(false);
  under.clock.admit();
  EXPECT_EQ(under.clock.take(), 0u);
  under.clock.done(0);
  EXPECT_EQ(under.clock.taken(), 0u);
  EXPECT_EQ(under.clock.released(), 0u);
}

TEST(VersionClock, GoesOnAboveVersionsOfRecords) {
  ClockUnderTest under;
  under.write();
  under.clock.go_on_above(10'000);  // beyond the window
  EXPECT_EQ(under.clock.taken(), 10'000u);
  EXPECT_EQ(under.clock.released(), 10'000u);
  EXPECT_EQ(under.write(), 10'001u);
  under.clock.go_on_above(7);
  EXPECT_EQ(under.clock.taken(), 10'001u);
  EXPECT_EQ(under.clock.released(), 10'001u);
}

TEST(VersionClock, ReleasesWaitForRecords) { EXPECT_TRUE(releases_wait_for_records()); }

TEST(VersionClock, WhereRecordsFailNothingIsReleasedAndNobodyWaits) {
  base::DurableMark mark(0);
  ClockUnderTest under;
  under.clock.wait_for_records(&mark);
  std::uint64_t version = 0;
  while (under.clock.may_take()) {
    version = under.clock.take();
    under.clock.done(version, version);
  }
  mark.rise(3);
  EXPECT_FALSE(under.clock.failed());
  mark.fail();
  EXPECT_TRUE(under.clock.failed());
  EXPECT_EQ(under.clock.released(), 3u);
  under.clock.admit();  // does not wait
  EXPECT_EQ(under.clock.taken(), version);
}

TEST(VersionClock, WithoutRecordsNothingWaits) {
  base::DurableMark all(base::DurableMark::kAll);
  base::DurableMark mark(7);
  ClockUnderTest under;
  for (base::DurableMark* const each : {static_cast<base::DurableMark*>(nullptr), &all, &mark}) {
    under.clock.wait_for_records(each);
    const std::uint64_t version = under.write();
    EXPECT_EQ(under.clock.released(), version);
  }
  {
    ClockUnderTest gone;  // leaves the list
    gone.clock.wait_for_records(&mark);
    gone.clock.done(gone.clock.take(), 8);
  }
  mark.rise(8);
}

// Each by a thread that sleeps until the disk has flushed, or will not any more.
TEST(VersionClockConcurrency, WhoWaitsForAReleaseIsWokenByAFlushAndByAFailure) {
  constexpr std::uint64_t kVersions = 200;
  base::DurableMark mark(0);
  ClockUnderTest under;
  under.clock.wait_for_records(&mark);
  for (std::uint64_t version = 1; version <= kVersions; ++version) {
    under.clock.done(under.clock.take(), version);
    std::thread flusher([&] { mark.rise(version); });
    for (;;) {
      const std::uint64_t seen = under.clock.seen_durable();
      if (under.clock.released_now() == version) break;
      under.clock.pause(seen);
    }
    flusher.join();
  }
  std::thread failing([&] { mark.fail(); });
  constexpr std::chrono::seconds kFarAway{60};
  EXPECT_FALSE(mark.await(kVersions + 1, kFarAway));
  EXPECT_TRUE(mark.failed()) << "it came back for nothing else";
  EXPECT_TRUE(mark.await(kVersions, kFarAway));
  failing.join();
  EXPECT_FALSE(mark.await(kVersions + 1, kFarAway)) << "and at once";
}

TEST(VersionClockConcurrency, ReleasedVersionsAreDurable) {
  EXPECT_TRUE(released_versions_are_durable(3, 2'000));
}

TEST(VersionClockConcurrency, ReleasedVersionsAreComplete) {
  EXPECT_TRUE(released_versions_are_complete(3, 20'000));
}

}  // namespace
}  // namespace espalier::memory

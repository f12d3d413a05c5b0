// SPDX-License-Identifier: Apache-2.0
#include "memory/version_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>

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

TEST(VersionClockConcurrency, ReleasedVersionsAreComplete) {
  EXPECT_TRUE(released_versions_are_complete(3, 20'000));
}

}  // namespace
}  // namespace espalier::memory

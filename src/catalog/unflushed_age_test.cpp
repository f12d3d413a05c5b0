// SPDX-License-Identifier: Apache-2.0
#include "catalog/unflushed_age.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>

#include "base/random.hpp"
#include "catalog/testing/recording_sink.hpp"

namespace espalier::catalog {
namespace {

constexpr std::uint64_t kAgeLimit = 1600;
constexpr std::uint64_t kAgeSlack = kAgeLimit / 16;

thread_local std::uint64_t age_now = 0;
std::uint64_t now_of_test() noexcept { return age_now; }

class UnflushedAges : public testing::Test {
 protected:
  void record() {
    const auto room = sink_.reserve(sizeof(RedoHead));
    ASSERT_TRUE(room);
    const RedoHead head = redo_head(ObjectKind::map, 1, 16, sizeof head);
    std::memcpy(room->data(), &head, sizeof head);
    sink_.hand_over(*room);
  }

  const std::uint64_t begins_ = age_now = 1;  // before the age reads the clock
  RecordingSink sink_{RecordingSink::Durable::by_hand};
  UnflushedAge age_{sink_, kAgeLimit, now_of_test};
};

TEST_F(UnflushedAges, AreOverWhereTheDiskStandsStill) {
  EXPECT_FALSE(age_.is_over());
  record();
  age_now += kAgeSlack;
  EXPECT_FALSE(age_.is_over());
  age_now += kAgeLimit - 2 * kAgeSlack - 1;
  EXPECT_FALSE(age_.is_over());
  age_now += kAgeSlack + 2;
  EXPECT_TRUE(age_.is_over());
  sink_.make_durable();
  EXPECT_FALSE(age_.is_over());
}

TEST_F(UnflushedAges, AreNotOverWhereNothingWaits) {
  record();
  sink_.make_durable();
  age_now += 100 * kAgeLimit;
  EXPECT_FALSE(age_.is_over());
  record();  // a writer checks before it writes
  EXPECT_FALSE(age_.is_over());
}

TEST_F(UnflushedAges, AreNotTakenByAClockThatWasReadBeforeAnothersLook) {
  record();
  age_now += kAgeLimit;
  EXPECT_TRUE(age_.is_over());
  sink_.make_durable();
  record();
  age_now -= kAgeSlack / 2;
  EXPECT_FALSE(age_.is_over());
}

TEST_F(UnflushedAges, AreNotOverOnceTheLogHasFailed) {
  record();
  age_now += kAgeSlack;
  EXPECT_FALSE(age_.is_over());
  age_now += kAgeLimit;
  EXPECT_TRUE(age_.is_over());
  sink_.fail_all();
  EXPECT_FALSE(age_.is_over()) << "writes are refused, and wait for nothing";
}

// Writers at random times, and a disk of random speed.
TEST_F(UnflushedAges, AreNeverToldTooLow) {
  base::Random random(base::seed_from_environment(43));
  std::deque<std::uint64_t> since;  // of records that are not durable
  std::uint64_t durable = 0;
  int over = 0;
  int early = 0;  // only within the tolerance
  for (int step = 0; step < 20'000; ++step) {
    age_now += random.below(random.below(50) == 0 ? kAgeLimit : kAgeSlack);
    if (random.below(4) == 0 && !since.empty()) {
      const std::uint64_t some = 1 + random.below(since.size());
      since.erase(since.begin(), since.begin() + static_cast<std::ptrdiff_t>(some));
      sink_.make_durable(durable += some);
    }
    const std::uint64_t oldest = since.empty() ? 0 : age_now - since.front();
    if (age_.is_over()) {
      ++over;
      early += oldest < kAgeLimit - 2 * kAgeSlack;
      EXPECT_FALSE(since.empty());
    } else {
      EXPECT_LT(oldest, kAgeLimit) << "step " << step;
      record();
      since.push_back(age_now);
    }
  }
  EXPECT_GT(over, 100);
  EXPECT_LT(early, over) << "after a pause alone";
}

}  // namespace
}  // namespace espalier::catalog

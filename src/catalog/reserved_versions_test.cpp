// SPDX-License-Identifier: Apache-2.0
#include "catalog/reserved_versions.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "catalog/testing/recording_sink.hpp"

namespace espalier::catalog {
namespace {

constexpr std::uint64_t kReservedAtATime = ReservedVersions::kAtATime;
constexpr std::uint32_t kReservingObject = 7;

struct LimitRecord {
  RedoHead head;
  std::uint64_t limit;
};

void write_limit(std::span<std::byte> to, std::uint32_t object, std::uint64_t limit) noexcept {
  RedoWriter(to).part(LimitRecord{redo_head(ObjectKind::map, object, 16, to.size()), limit});
}

std::uint64_t limit_in(std::string_view record) {
  LimitRecord read{};
  EXPECT_EQ(record.size(), sizeof read);
  std::memcpy(&read, record.data(), sizeof read);
  EXPECT_EQ(read.head.object, kReservingObject);
  return read.limit;
}

class ReservedVersionsOfAnObject : public testing::Test {
 protected:
  RecordingSink sink_{RecordingSink::Durable::by_hand};
  ReservedVersions reserved_{sink_, kReservingObject, {sizeof(LimitRecord), write_limit}};
};

TEST_F(ReservedVersionsOfAnObject, AreCoveredOnceTheirRecordIsDurable) {
  reserved_.keep_ahead(10);
  ASSERT_EQ(sink_.count(), 1u);
  EXPECT_EQ(limit_in(sink_.records().front()), 10 + kReservedAtATime);
  EXPECT_EQ(reserved_.limit(), 10 + kReservedAtATime);
  EXPECT_FALSE(reserved_.covers(11));
  reserved_.keep_ahead(11);
  EXPECT_EQ(sink_.count(), 1u) << "one is on its way";
  EXPECT_FALSE(reserved_.covers(11));
  sink_.make_durable();
  reserved_.keep_ahead(12);
  EXPECT_EQ(sink_.count(), 1u);
  EXPECT_TRUE(reserved_.covers(10 + kReservedAtATime));
  EXPECT_FALSE(reserved_.covers(10 + kReservedAtATime + 1));
}

TEST_F(ReservedVersionsOfAnObject, AreReservedAnewWhenHalfOfThemAreTaken) {
  reserved_.keep_ahead(0);
  sink_.make_durable();
  reserved_.keep_ahead(kReservedAtATime / 2);
  EXPECT_EQ(sink_.count(), 1u);
  reserved_.keep_ahead(kReservedAtATime / 2 + 1);
  ASSERT_EQ(sink_.count(), 2u);
  EXPECT_EQ(limit_in(sink_.records().back()), kReservedAtATime / 2 + 1 + kReservedAtATime);
  EXPECT_TRUE(reserved_.covers(kReservedAtATime)) << "what was covered stays so";
  EXPECT_FALSE(reserved_.covers(kReservedAtATime + 1));
  sink_.make_durable();
  reserved_.keep_ahead(kReservedAtATime);
  EXPECT_TRUE(reserved_.covers(kReservedAtATime + 1));
}

// A clock that other objects share may be far beyond all that is reserved.
TEST_F(ReservedVersionsOfAnObject, GoOnWhereTheClockIs) {
  reserved_.keep_ahead(0);
  sink_.make_durable();
  reserved_.keep_ahead(10 * kReservedAtATime);
  EXPECT_FALSE(reserved_.covers(10 * kReservedAtATime));
  sink_.make_durable();
  reserved_.keep_ahead(10 * kReservedAtATime);
  EXPECT_TRUE(reserved_.covers(11 * kReservedAtATime));
}

TEST_F(ReservedVersionsOfAnObject, AreNotReservedWithoutRoomAndLaterAre) {
  sink_.refuse(true);
  reserved_.keep_ahead(1);
  EXPECT_EQ(reserved_.limit(), 0u);
  sink_.refuse(false);
  reserved_.keep_ahead(1);
  EXPECT_EQ(sink_.count(), 1u);
}

TEST(ReservedVersionsConcurrency, NoneIsCoveredBeforeItsRecordIsDurable) {
  RecordingSink sink(RecordingSink::Durable::by_hand);
  ReservedVersions reserved(sink, kReservingObject, {sizeof(LimitRecord), write_limit});
  std::atomic<std::uint64_t> durable_limit = 0;  // of records that are durable, or about to be
  std::atomic<std::uint64_t> taken = 0;
  std::atomic<bool> good = true;
  std::atomic<int> writing = 3;
  std::vector<std::thread> threads;
  constexpr std::uint64_t kTakes = 2000;
  for (int writer = 0; writer < 3; ++writer) {
    threads.emplace_back([&] {
      // And until a second record is requested.
      for (std::uint64_t i = 0; i < kTakes || sink.count() < 2; ++i) {
        reserved.keep_ahead(taken.load());
        const std::uint64_t version =
            taken.fetch_add(kReservedAtATime / 100) + kReservedAtATime / 100;
        if (reserved.covers(version) && durable_limit.load() < version) good = false;
      }
      --writing;
    });
  }
  threads.emplace_back([&] {
    while (writing.load() != 0) {
      const auto records = sink.records();
      if (!records.empty()) durable_limit.store(limit_in(records.back()));
      sink.make_durable(records.size());
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(good);
  EXPECT_GT(sink.count(), 1u);
}

}  // namespace
}  // namespace espalier::catalog

// SPDX-License-Identifier: Apache-2.0
#include "sequencer/counters.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "catalog/testing/recording_sink.hpp"
#include "sequencer/redo_record.hpp"

namespace espalier::sequencer {
namespace {

TEST(Counters, HandOutRangesOneBehindTheOther) {
  Counters counters;
  EXPECT_EQ(*counters.take("a", 1), 0u);
  EXPECT_EQ(*counters.take("a", 10), 1u);
  EXPECT_EQ(*counters.take("a", 0xFFFF'FFFF), 11u);
  EXPECT_EQ(*counters.take("a", 1), std::uint64_t{11} + 0xFFFF'FFFF);
}

TEST(Counters, ACountOfZeroTakesNothing) {
  Counters counters;
  EXPECT_EQ(*counters.take("a", 0), 0u);
  EXPECT_EQ(*counters.take("a", 1), 0u);
}

TEST(Counters, EachNameCountsForItself) {
  Counters counters;
  EXPECT_EQ(*counters.take("a", 5), 0u);
  EXPECT_EQ(*counters.take("b", 1), 0u);
  EXPECT_EQ(*counters.take("", 2), 0u);
  EXPECT_EQ(*counters.take(std::string("a\0b", 3), 1), 0u) << "a name may hold any bytes";
  EXPECT_EQ(*counters.take("a", 1), 5u);
  EXPECT_EQ(*counters.take("", 1), 2u);
}

TEST(Counters, OneTooManyIsRefusedAndTheOthersGoOn) {
  Counters counters;
  for (std::size_t i = 0; i < Counters::kMost; ++i) {
    ASSERT_TRUE(counters.take(std::to_string(i), 1));
  }
  const auto refused = counters.take("one more", 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::out_of_memory);
  EXPECT_EQ(refused.error().detail, Counters::kMost);
  EXPECT_EQ(*counters.take("0", 1), 1u);
}

TEST(Counters, TakingIsRecordedAndNumbersGoOnAboveIt) {
  catalog::RecordingSink sink;
  Counters counters;
  EXPECT_EQ(*counters.take("ab", 5, &sink), 0u);
  EXPECT_EQ(catalog::hex_of(sink.records().back()),
            "2200000000000000 0000000003130000 0500000000000000 0200000000000000 6162");
  EXPECT_EQ(*counters.take("ab", 3, &sink), 5u);
  EXPECT_EQ(*counters.take("c", 1, &sink), 0u);
  Counters others;
  for (int times = 0; times < 2; ++times) {
    for (const std::string_view record : sink.records()) ASSERT_TRUE(others.apply_redo(record));
  }
  EXPECT_EQ(*others.take("ab", 1), 8u);
  EXPECT_EQ(*others.take("c", 1), 1u);
  EXPECT_EQ(*others.take("d", 1), 0u);
}

TEST(Counters, WithoutRoomForARecordNothingIsTaken) {
  catalog::RecordingSink sink;
  Counters counters;
  sink.refuse(true);
  EXPECT_EQ(counters.take("a", 5, &sink).error().code, Code::exhausted);
  sink.refuse(false);
  EXPECT_EQ(*counters.take("a", 5, &sink), 0u);
}

TEST(CountersConcurrency, RecordsComeInTheOrderOfTheirNumbers) {
  catalog::RecordingSink sink;
  Counters counters;
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 1000; ++j) ASSERT_TRUE(counters.take("shared", 2, &sink));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::uint64_t next = 0;
  for (const std::string_view record : sink.records()) {
    ASSERT_EQ(read_counted(record)->next, next += 2);
  }
  EXPECT_EQ(next, 8000u);
}

TEST(CountersConcurrency, NoNumberComesTwiceOrNever) {
  constexpr std::uint32_t kThreads = 4;
  constexpr std::uint32_t kTakes = 2000;
  Counters counters;
  std::vector<std::vector<std::uint64_t>> taken(kThreads);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint32_t j = 0; j < kTakes; ++j) {
        const std::uint32_t count = j % 3 + 1;
        const std::uint64_t first = *counters.take("shared", count);
        for (std::uint32_t k = 0; k < count; ++k) taken[i].push_back(first + k);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::uint64_t> all;
  for (const auto& of_one : taken) {
    EXPECT_TRUE(std::is_sorted(of_one.begin(), of_one.end()));
    all.insert(all.end(), of_one.begin(), of_one.end());
  }
  std::sort(all.begin(), all.end());
  for (std::uint64_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i);
  EXPECT_EQ(*counters.take("shared", 1), all.size());
}

}  // namespace
}  // namespace espalier::sequencer

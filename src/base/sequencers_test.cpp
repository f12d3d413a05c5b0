// SPDX-License-Identifier: Apache-2.0
#include "base/sequencers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace espalier::base {
namespace {

TEST(Sequencers, HandOutRangesOneBehindTheOther) {
  Sequencers sequencers;
  EXPECT_EQ(*sequencers.take("a", 1), 0u);
  EXPECT_EQ(*sequencers.take("a", 10), 1u);
  EXPECT_EQ(*sequencers.take("a", 0xFFFF'FFFF), 11u);
  EXPECT_EQ(*sequencers.take("a", 1), std::uint64_t{11} + 0xFFFF'FFFF);
}

TEST(Sequencers, ACountOfZeroTakesNothing) {
  Sequencers sequencers;
  EXPECT_EQ(*sequencers.take("a", 0), 0u);
  EXPECT_EQ(*sequencers.take("a", 1), 0u);
}

TEST(Sequencers, EachNameCountsForItself) {
  Sequencers sequencers;
  EXPECT_EQ(*sequencers.take("a", 5), 0u);
  EXPECT_EQ(*sequencers.take("b", 1), 0u);
  EXPECT_EQ(*sequencers.take("", 2), 0u);
  EXPECT_EQ(*sequencers.take(std::string("a\0b", 3), 1), 0u) << "a name may hold any bytes";
  EXPECT_EQ(*sequencers.take("a", 1), 5u);
  EXPECT_EQ(*sequencers.take("", 1), 2u);
}

TEST(Sequencers, OneTooManyIsRefusedAndTheOthersGoOn) {
  Sequencers sequencers;
  for (std::size_t i = 0; i < Sequencers::kMost; ++i) {
    ASSERT_TRUE(sequencers.take(std::to_string(i), 1));
  }
  const auto refused = sequencers.take("one more", 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::out_of_memory);
  EXPECT_EQ(refused.error().detail, Sequencers::kMost);
  EXPECT_EQ(*sequencers.take("0", 1), 1u);
}

TEST(SequencersConcurrency, NoNumberComesTwiceOrNever) {
  constexpr std::uint32_t kThreads = 4;
  constexpr std::uint32_t kTakes = 2000;
  Sequencers sequencers;
  std::vector<std::vector<std::uint64_t>> taken(kThreads);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint32_t j = 0; j < kTakes; ++j) {
        const std::uint32_t count = j % 3 + 1;
        const std::uint64_t first = *sequencers.take("shared", count);
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
  EXPECT_EQ(*sequencers.take("shared", 1), all.size());
}

}  // namespace
}  // namespace espalier::base

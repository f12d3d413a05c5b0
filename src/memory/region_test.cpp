// SPDX-License-Identifier: Apache-2.0
#include "memory/region.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

namespace espalier::memory {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

Region reserve(std::uint64_t extents, bool huge_pages = false) {
  return *Region::reserve({.bytes_max = extents * kExtentBytes, .huge_pages = huge_pages});
}

bool all_zero(const std::byte* at, std::uint64_t bytes) {
  return std::all_of(at, at + bytes, [](std::byte b) { return b == std::byte{0}; });
}

TEST(Region, IsAlignedAndHoldsItsHeaderFromTheStart) {
  const Region region = reserve(4);
  EXPECT_EQ(std::bit_cast<std::uintptr_t>(region.base()) % kExtentBytes, 0u);
  EXPECT_GE(region.bytes(), 4 * kExtentBytes);
  EXPECT_EQ(region.bytes() % kExtentBytes, 0u);
  EXPECT_EQ(region.taken_bytes(), kExtentBytes);
  EXPECT_EQ(region.limit_bytes(), 4 * kExtentBytes);
  EXPECT_EQ(region.header(), region.at(0));
  EXPECT_TRUE(all_zero(region.header(), kExtentBytes));
}

TEST(Region, TheLimitIsRoundedUpAndLeavesRoomForOneExtent) {
  EXPECT_EQ(Region::reserve({.bytes_max = 0, .huge_pages = false})->limit_bytes(), 4 * kMiB);
  EXPECT_EQ(Region::reserve({.bytes_max = 5 * kMiB, .huge_pages = false})->limit_bytes(), 6 * kMiB);
}

TEST(Region, MoreThanOffsetsCanNameIsRefused) {
  for (const std::uint64_t bytes :
       {(std::uint64_t{1} << 45) + 1, std::numeric_limits<std::uint64_t>::max()}) {
    const auto region = Region::reserve({.bytes_max = bytes, .huge_pages = false});
    ASSERT_FALSE(region);
    EXPECT_EQ(region.error().code, Code::invalid_argument);
  }
}

TEST(Region, TakesFirstFitUpToTheLimit) {
  Region region = reserve(4);
  EXPECT_EQ(*region.take(1), 1 * kExtentBytes);
  EXPECT_EQ(*region.take(2), 2 * kExtentBytes);
  const auto full = region.take(1);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error(), (Error{Code::out_of_memory, 0, 8}));
  region.give(1 * kExtentBytes, 1);
  EXPECT_EQ(region.taken_bytes(), 3 * kExtentBytes);
  EXPECT_FALSE(region.take(2));
  EXPECT_EQ(*region.take(1), 1 * kExtentBytes);
}

TEST(Region, FindsRunsAlthoughSingleExtentsAreScattered) {
  Region region = reserve(9);
  std::vector<std::uint64_t> singles;
  for (int i = 0; i < 8; ++i) singles.push_back(*region.take(1));
  for (std::size_t i = 0; i < singles.size(); i += 2) region.give(singles[i], 1);
  const auto run = region.take(4);  // four are allowed, nowhere in a row among the nine
  ASSERT_TRUE(run);
  EXPECT_EQ(region.taken_bytes(), 9 * kExtentBytes);
  EXPECT_FALSE(region.take(1));
}

TEST(Region, FindsARunBehindFullWordsOfTheBitmap) {
  Region region = reserve(200);
  for (int i = 1; i < 200; ++i) ASSERT_TRUE(region.take(1));
  for (const std::uint64_t extent : {5u, 128u, 129u}) region.give(extent * kExtentBytes, 1);
  EXPECT_EQ(*region.take(2), 128 * kExtentBytes);
  EXPECT_EQ(*region.take(1), 5 * kExtentBytes);
}

TEST(Region, ManyRunsOfAllLengths) {
  Region region = reserve(300);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> runs;
  for (std::uint64_t n = 1; n <= 20; ++n) runs.emplace_back(*region.take(n), n);
  std::sort(runs.begin(), runs.end());
  for (std::size_t i = 1; i < runs.size(); ++i) {
    EXPECT_EQ(runs[i - 1].first + runs[i - 1].second * kExtentBytes, runs[i].first);
  }
  for (const auto& [offset, n] : runs) region.give(offset, n);
  EXPECT_EQ(region.taken_bytes(), kExtentBytes);
  EXPECT_EQ(*region.take(299), kExtentBytes);
}

TEST(Region, WhatWasGivenBackReadsAsZeros) {
  for (const bool huge_pages : {false, true}) {
    Region region = reserve(4, huge_pages);
    const std::uint64_t offset = *region.take(2);
    std::memset(region.at(offset), 0xFF, 2 * kExtentBytes);
    region.give(offset, 2);
    EXPECT_TRUE(all_zero(region.at(offset), 2 * kExtentBytes));
    EXPECT_EQ(*region.take(2), offset);
    EXPECT_TRUE(all_zero(region.at(offset), 2 * kExtentBytes));
  }
}

TEST(Region, MovingKeepsTheMemory) {
  Region first = reserve(4);
  std::byte* const base = first.base();
  const std::uint64_t offset = *first.take(1);
  *first.at(offset) = std::byte{7};
  Region second = std::move(first);
  EXPECT_EQ(second.base(), base);
  EXPECT_EQ(*second.at(offset), std::byte{7});
  Region third = reserve(2);
  third = std::move(second);
  EXPECT_EQ(third.base(), base);
  EXPECT_EQ(third.taken_bytes(), 2 * kExtentBytes);
}

TEST(Region, SaysWhichPagesItHas) {
  EXPECT_EQ(reserve(4).page_message(), "4 KiB pages (huge pages were not asked for)");
  const Region region = reserve(4, true);
  EXPECT_FALSE(region.page_message().empty());
  if (region.page_kind() == PageKind::explicit_huge) {
    EXPECT_EQ(region.bytes(), 4 * kExtentBytes);  // they are not promised twice
  }
}

TEST(PageChoice, PrefersExplicitThenTransparentThenSmall) {
  const auto choose = [](std::uint64_t free, bool transparent) {
    return choose_pages({.explicit_free = free, .transparent_available = transparent}, 8, true);
  };
  EXPECT_EQ(choose(8, true).kind, PageKind::explicit_huge);
  EXPECT_EQ(choose(8, false).message, "explicit 2 MiB pages (8 are set aside)");
  EXPECT_EQ(choose(7, true).kind, PageKind::transparent);
  EXPECT_EQ(choose(7, true).message,
            "transparent huge pages (only 7 of 8 explicit ones are free: raise vm.nr_hugepages)");
  EXPECT_EQ(choose(0, true).message,
            "transparent huge pages (no explicit ones are free: raise vm.nr_hugepages)");
  EXPECT_EQ(choose(0, false).kind, PageKind::small);
  EXPECT_EQ(choose(0, false).message,
            "4 KiB pages (huge pages: no explicit ones are free, and transparent ones are switched "
            "off in /sys/kernel/mm/transparent_hugepage/enabled)");
  EXPECT_EQ(choose_pages({.explicit_free = 99, .transparent_available = true}, 8, false).kind,
            PageKind::small);
}

TEST(RegionConcurrency, NoExtentHasTwoOwners) {
  Region region = reserve(64);
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 1; thread <= 3; ++thread) {
    threads.emplace_back([&region, thread] {
      for (std::uint64_t round = 0; round < 200; ++round) {
        const std::uint64_t n = 1 + (round * thread) % 5;
        const auto offset = region.take(n);
        ASSERT_TRUE(offset);
        for (std::uint64_t i = 0; i < n; ++i) {
          std::byte* const at = region.at(*offset + i * kExtentBytes);
          ASSERT_EQ(*at, std::byte{0});
          *at = static_cast<std::byte>(thread);
        }
        ASSERT_EQ(*region.at(*offset), static_cast<std::byte>(thread));
        region.give(*offset, n);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(region.taken_bytes(), kExtentBytes);
}

}  // namespace
}  // namespace espalier::memory

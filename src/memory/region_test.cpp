// SPDX-License-Identifier: Apache-2.0
#include "memory/region.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/cpu.hpp"

namespace espalier::memory {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitizerWatches = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitizerWatches = true;
#else
constexpr bool kSanitizerWatches = false;
#endif
#else
constexpr bool kSanitizerWatches = false;
#endif

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

TEST(Region, TakesAddressesOnceUpToTheLimit) {
  Region region = reserve(4);
  EXPECT_EQ(*region.take(1), 1 * kExtentBytes);
  EXPECT_EQ(*region.take(2), 2 * kExtentBytes);
  const auto full = region.take(1);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error(), (Error{Code::out_of_memory, 0, 8}));
  region.give(1 * kExtentBytes, kExtentBytes);
  EXPECT_EQ(region.taken_bytes(), 3 * kExtentBytes);
  EXPECT_FALSE(region.take(2));
  EXPECT_EQ(*region.take(1), 4 * kExtentBytes);
  EXPECT_EQ(region.retake(1 * kExtentBytes, kExtentBytes).error().code, Code::out_of_memory);
  region.give(2 * kExtentBytes, 2 * kExtentBytes);
  EXPECT_TRUE(region.retake(1 * kExtentBytes, kExtentBytes));
  EXPECT_EQ(region.taken_bytes(), 3 * kExtentBytes);
  EXPECT_EQ(region.end_offset(), 5 * kExtentBytes);
}

TEST(Region, EveryClassMayHaveHadAllMemoryInItsTurn) {
  Region region = reserve(8);
  for (std::uint64_t turn = 0; turn < kAddressesPerLimit; ++turn) {
    std::vector<std::uint64_t> taken;
    while (const auto offset = region.take(1)) taken.push_back(*offset);
    ASSERT_EQ(taken.size(), 7u) << "turn " << turn;
    std::memset(region.at(taken.back()), 0xFF, kExtentBytes);
    for (const std::uint64_t offset : taken) region.give(offset, kExtentBytes);
  }
  EXPECT_EQ(region.taken_bytes(), kExtentBytes);
}

TEST(Region, EndsWithItsAddresses) {
  Region region = reserve(4);
  std::uint64_t taken = 0;
  while (const auto offset = region.take(1)) {
    region.give(*offset, kExtentBytes);
    ++taken;
  }
  EXPECT_EQ((taken + 1) * kExtentBytes, region.bytes());
  EXPECT_EQ(region.taken_bytes(), kExtentBytes);
  EXPECT_FALSE(region.set_aside());
  EXPECT_TRUE(region.retake(kExtentBytes, kExtentBytes));  // memory there still is
}

TEST(Region, SlabsCountOneByOne) {
  Region region = reserve(2);
  const std::uint64_t extent = *region.set_aside();
  EXPECT_EQ(region.taken_bytes(), kExtentBytes);
  for (std::uint64_t slab = 0; slab < kExtentBytes / kSlabBytes; ++slab) {
    ASSERT_TRUE(region.retake(extent + slab * kSlabBytes, kSlabBytes));
    EXPECT_EQ(region.taken_bytes(), kExtentBytes + (slab + 1) * kSlabBytes);
    std::memset(region.at(extent + slab * kSlabBytes), 0xFF, kSlabBytes);
  }
  const std::uint64_t next = *region.set_aside();
  EXPECT_FALSE(region.retake(next, kSlabBytes));
  region.give(extent + kSlabBytes, kSlabBytes);
  EXPECT_TRUE(all_zero(region.at(extent + kSlabBytes), kSlabBytes));
  EXPECT_EQ(*region.at(extent), std::byte{0xFF});
  EXPECT_EQ(*region.at(extent + 2 * kSlabBytes), std::byte{0xFF});
  EXPECT_TRUE(region.retake(next, kSlabBytes));
}

TEST(Region, MemoryThatLiesElsewhereCountsToo) {
  Region region = reserve(4);
  ASSERT_TRUE(region.charge(3 * kExtentBytes - 4096));
  EXPECT_EQ(region.taken_bytes(), 4 * kExtentBytes - 4096);
  EXPECT_EQ(region.memory_bytes(), region.taken_bytes());
  EXPECT_FALSE(region.take(1));
  const auto more = region.charge(4097);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Code::out_of_memory);
  EXPECT_FALSE(region.charge(std::numeric_limits<std::uint64_t>::max()));
  ASSERT_TRUE(region.charge(4096));
  region.uncharge(kExtentBytes);
  EXPECT_TRUE(region.take(1));
  region.uncharge(2 * kExtentBytes);
  EXPECT_EQ(region.taken_bytes(), 2 * kExtentBytes);
}

TEST(Region, ReadsAsZerosWhereNothingWasTaken) {
  const Region region = reserve(4);
  EXPECT_TRUE(all_zero(region.at(region.end_offset()), kExtentBytes));
  EXPECT_EQ(*region.at(region.bytes() - 1), std::byte{0});
}

using RegionDeathTest = ::testing::Test;

TEST(RegionDeathTest, MistakesAreAsserted) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fork has no memory of the region
  Region region = reserve(4);
  const std::uint64_t offset = *region.take(1);
  EXPECT_DEATH(region.give(0, kExtentBytes), "offset > 0");
  EXPECT_DEATH(region.give(offset + kExtentBytes, kExtentBytes), "all_taken");
  EXPECT_DEATH((void)region.retake(offset, kExtentBytes), "taken");
  EXPECT_DEATH(*region.at(offset + kExtentBytes) = std::byte{1}, "");  // not taken: not writable
}

TEST(Region, WhatWasGivenBackReadsAsZeros) {
  for (const bool huge_pages : {false, true}) {
    Region region = reserve(4, huge_pages);
    const std::uint64_t offset = *region.take(2);
    std::memset(region.at(offset), 0xFF, 2 * kExtentBytes);
    region.give(offset, 2 * kExtentBytes);
    EXPECT_TRUE(all_zero(region.at(offset), 2 * kExtentBytes));
    ASSERT_TRUE(region.retake(offset, 2 * kExtentBytes));
    EXPECT_TRUE(all_zero(region.at(offset), 2 * kExtentBytes));
  }
}

bool is_resident(std::byte* at, std::uint64_t bytes) {
  constexpr std::uint64_t kSmallPage = 4096;
  std::vector<unsigned char> pages(bytes / kSmallPage);
  EXPECT_EQ(::mincore(at, bytes, pages.data()), 0);
  return std::ranges::all_of(pages, [](unsigned char page) { return (page & 1) != 0; });
}

// The thread that brings them is waited for; without it, or without huge pages, none is brought.
TEST(Region, ALargeOneHasExtentsReady) {
  constexpr std::uint64_t kGrown = 64 * kMiB / kExtentBytes;
  constexpr std::uint64_t kReadyExtents = 4;
  Region region = reserve(kGrown + kReadyExtents + 3, true);
  const auto first = region.take(1);
  ASSERT_TRUE(first);
  region.wait_until_idle();
  EXPECT_FALSE(is_resident(region.at(*first), kExtentBytes));
  for (std::uint64_t i = 2; i < kGrown; ++i) ASSERT_TRUE(region.take(1));
  ASSERT_TRUE(region.take(1));
  region.wait_until_idle();
  const std::uint64_t taken = region.taken_bytes();
  for (std::uint64_t i = 0; i < kReadyExtents; ++i) {
    const auto offset = region.take(1);
    ASSERT_TRUE(offset);
    if (region.page_kind() == PageKind::transparent) {
      EXPECT_TRUE(is_resident(region.at(*offset), kExtentBytes)) << i;
    }
    EXPECT_TRUE(all_zero(region.at(*offset), kExtentBytes));
    std::memset(region.at(*offset), 1, kExtentBytes);
  }
  EXPECT_EQ(region.taken_bytes(), taken + kReadyExtents * kExtentBytes);
  // What is ready counts for nothing, and takes no more than there is.
  ASSERT_TRUE(region.take(1));
  ASSERT_TRUE(region.take(1));
  EXPECT_FALSE(region.take(1));
  region.wait_until_idle();
}

/// Bytes of all that was taken once, or is ready, which the system has pages for.
std::uint64_t bytes_in_memory(const Region& region) {
  constexpr std::uint64_t kSmallPage = 4096;
  std::vector<unsigned char> pages(region.end_offset() / kSmallPage);
  EXPECT_EQ(::mincore(region.base(), region.end_offset(), pages.data()), 0);
  const auto resident = [](unsigned char page) { return (page & 1) != 0; };
  return static_cast<std::uint64_t>(std::ranges::count_if(pages, resident)) * kSmallPage;
}

constexpr std::uint64_t kExtentsOfSpares =
    4 * 16 * kMiB / kExtentBytes;  // for as many as there are

/// Takes extents in sequence, and touches none.
std::vector<std::uint64_t> take_each(Region& region, std::uint64_t extents) {
  std::vector<std::uint64_t> taken;
  for (std::uint64_t i = 0; i < extents; ++i) taken.push_back(*region.take(1));
  region.wait_until_idle();
  return taken;
}

TEST(Region, SparesGoWhenItShrinks) {
  Region region = reserve(2 * kExtentsOfSpares, true);
  const auto taken = take_each(region, kExtentsOfSpares);
  if (region.page_kind() == PageKind::transparent) {
    EXPECT_GE(bytes_in_memory(region), 4 * kExtentBytes);
  }
  for (const std::uint64_t offset : taken) region.give(offset, kExtentBytes);
  region.wait_until_idle();
  EXPECT_EQ(bytes_in_memory(region), 0u);
  // Their addresses are those that are taken next.
  const std::uint64_t end = region.end_offset();
  const std::uint64_t spares = end / kExtentBytes - 1 - taken.size();
  for (std::uint64_t i = 0; i < spares; ++i) {
    const std::uint64_t offset = *region.take(1);
    EXPECT_LT(offset, end);
    EXPECT_EQ(std::ranges::find(taken, offset), taken.end());
    EXPECT_TRUE(all_zero(region.at(offset), kExtentBytes));
    std::memset(region.at(offset), 1, kExtentBytes);
  }
  EXPECT_EQ(region.end_offset(), end);
  EXPECT_EQ(*region.take(1), end);
}

TEST(Region, NoSpareStandsAboveTheLimit) {
  Region region = reserve(kExtentsOfSpares + 8, true);
  std::memset(region.header(), 1, kExtentBytes);
  for (const std::uint64_t offset : take_each(region, kExtentsOfSpares)) {
    std::memset(region.at(offset), 1, kExtentBytes);
  }
  std::uint64_t elsewhere = 0;
  const auto is_within = [&] {
    region.wait_until_idle();
    return bytes_in_memory(region) + elsewhere <= region.limit_bytes();
  };
  EXPECT_TRUE(is_within());
  // By slabs, a run, and what lies elsewhere, none of which spares are for: seven extents.
  const std::uint64_t extent = *region.set_aside();
  for (std::uint64_t at = 0; at < kExtentBytes; at += kSlabBytes) {
    ASSERT_TRUE(region.retake(extent + at, kSlabBytes));
    std::memset(region.at(extent + at), 1, kSlabBytes);
  }
  EXPECT_TRUE(is_within());
  elsewhere = 3 * kExtentBytes;
  ASSERT_TRUE(region.charge(elsewhere));
  EXPECT_TRUE(is_within());
  const std::uint64_t run = *region.take(3);
  std::memset(region.at(run), 1, 3 * kExtentBytes);
  EXPECT_EQ(region.taken_bytes(), region.limit_bytes());
  EXPECT_TRUE(is_within());
  // And come again when there is room.
  region.give(run, 3 * kExtentBytes);
  region.wait_until_idle();
  EXPECT_TRUE(is_within());
  if (region.page_kind() == PageKind::transparent) {
    EXPECT_EQ(bytes_in_memory(region), region.limit_bytes() - elsewhere);
  }
}

TEST(Region, TakesBeyondALiftedLimitAndThenNothing) {
  Region region = reserve(4, false);
  const auto taken = take_each(region, 3);  // with the header that is all
  EXPECT_FALSE(region.take(1));
  region.lift_limit(true);
  const std::uint64_t beyond = *region.take(2);
  std::memset(region.at(beyond), 1, 2 * kExtentBytes);
  EXPECT_TRUE(region.charge(kExtentBytes));
  region.lift_limit(false);
  EXPECT_EQ(region.taken_bytes(), 7 * kExtentBytes);
  EXPECT_EQ(region.limit_bytes(), 4 * kExtentBytes);
  EXPECT_FALSE(region.take(1));
  EXPECT_FALSE(region.charge(1));
  region.give(taken[0], kExtentBytes);
  region.give(taken[1], kExtentBytes);
  region.uncharge(kExtentBytes);
  EXPECT_FALSE(region.retake(taken[0], kExtentBytes)) << "just as much as the limit is taken";
  region.give(beyond, 2 * kExtentBytes);
  EXPECT_TRUE(region.retake(taken[0], kExtentBytes));
}

TEST(Region, WhatLiesElsewhereWantsNoSpares) {
  Region region = reserve(2 * kExtentsOfSpares, true);
  ASSERT_TRUE(region.charge(kExtentsOfSpares * kExtentBytes));
  ASSERT_TRUE(region.take(1));
  region.wait_until_idle();
  EXPECT_EQ(region.end_offset(), 2 * kExtentBytes);
  region.uncharge(kExtentsOfSpares * kExtentBytes);
}

std::set<int> threads_of_process() {
  std::set<int> threads;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
    threads.insert(std::stoi(each.path().filename().string()));
  }
  return threads;
}

// A worker that is confined to its core must not have its thread of spares there too.
TEST(Region, ItsThreadRunsWhereItsMakerMay) {
  Region region = reserve(2 * kExtentsOfSpares, true);
  cpu_set_t own;
  ASSERT_EQ(::sched_getaffinity(0, sizeof own, &own), 0);
  const std::set<int> before = threads_of_process();
  int pinned = 0;  // which may be seen for a moment after it was joined
  std::thread([&] {
    pinned = ::gettid();
    ASSERT_TRUE(base::pin_this_thread(base::usable_cores().front()));
    take_each(region, kExtentsOfSpares);
  }).join();
  std::size_t others = 0;
  for (const int thread : threads_of_process()) {
    if (before.contains(thread) || thread == pinned) continue;
    cpu_set_t its;
    if (::sched_getaffinity(thread, sizeof its, &its) != 0) continue;  // it has just ended
    ++others;
    EXPECT_TRUE(CPU_EQUAL(&own, &its));
  }
  EXPECT_EQ(others, region.page_kind() == PageKind::transparent ? 1u : 0u);
}

// Of writable memory that is no file's the system gives no more than this, and has it already.
class DataLimit {
 public:
  DataLimit() {
    EXPECT_EQ(::getrlimit(RLIMIT_DATA, &before_), 0);
    const rlimit low{4096, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_DATA, &low), 0);
  }
  ~DataLimit() { ::setrlimit(RLIMIT_DATA, &before_); }
  DataLimit(const DataLimit&) = delete;
  DataLimit& operator=(const DataLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(Region, ARefusalThatPassesEndsNoSpares) {
  if (kSanitizerWatches)
    GTEST_SKIP() << "a sanitizer that asks for memory meanwhile ends the process";
  Region region = reserve(2 * kExtentsOfSpares, true);
  take_each(region, kExtentsOfSpares);
  const std::uint64_t end = region.end_offset();
  {
    const DataLimit limit;
    const auto one = region.take(1);  // which is ready
    region.wait_until_idle();
    ASSERT_EQ(one.has_value(), region.page_kind() == PageKind::transparent);
  }
  EXPECT_EQ(region.end_offset(), end);
  take_each(region, 1);
  if (region.page_kind() == PageKind::transparent) {
    EXPECT_EQ(region.end_offset(), end + 2 * kExtentBytes) << "one for each that was taken";
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
  EXPECT_FALSE(reserve(4, true).page_message().empty());
}

TEST(PageChoice, PrefersExplicitThenTransparentThenSmall) {
  const auto choose = [](std::uint64_t free, bool transparent) {
    return choose_pages({.explicit_free = free, .transparent_available = transparent}, 8, true);
  };
  EXPECT_EQ(choose(8, true).kind, PageKind::explicit_huge);
  EXPECT_EQ(choose(8, false).message, "explicit 2 MiB pages (8 are free for them)");
  EXPECT_EQ(choose(7, true).kind, PageKind::transparent);
  EXPECT_EQ(choose(7, true).message,
            "transparent huge pages (only 7 of 8 explicit ones are free: raise vm.nr_hugepages)");
  EXPECT_EQ(choose(0, true).message,
            "transparent huge pages (no explicit ones are free: raise vm.nr_hugepages)");
  EXPECT_EQ(choose_pages({.explicit_free = 8, .transparent_available = true, .mappings_max = 8200},
                         8, true)
                .message,
            "transparent huge pages (explicit ones need as many mappings: raise vm.max_map_count)");
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
  std::atomic<std::uint64_t> taken{0};
  for (std::uint64_t thread = 1; thread <= 3; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t round = 0; round < 200; ++round) {
        const std::uint64_t n = 1 + (round * thread) % 5;
        const auto offset = region.take(n);
        if (!offset) return;  // the addresses are used up
        ++taken;
        for (std::uint64_t i = 0; i < n; ++i) {
          std::byte* const at = region.at(*offset + i * kExtentBytes);
          ASSERT_EQ(*at, std::byte{0});
          *at = static_cast<std::byte>(thread);
        }
        ASSERT_EQ(*region.at(*offset), static_cast<std::byte>(thread));
        region.give(*offset, n * kExtentBytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(taken, 500u);
  EXPECT_EQ(region.taken_bytes(), kExtentBytes);
}

}  // namespace
}  // namespace espalier::memory

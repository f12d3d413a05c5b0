// SPDX-License-Identifier: Apache-2.0
// Heap exhaustion at every allocation of a hash map's writes: a write happens completely, or is
// refused with out_of_memory and has changed nothing, and nothing leaks.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/hash/hash_pipeline.hpp"
#include "kinds/hash/testing/hash_fixture.hpp"
#include "tests/heap/failing_heap.hpp"

namespace espalier::hash {
namespace {

using Failure = test::FailingHeap::Failure;

/// The i-th key, without the heap.
struct Key {
  explicit Key(std::uint64_t i)
      : length(static_cast<std::size_t>(std::snprintf(text, sizeof text, "key%lu", i))) {}
  [[nodiscard]] std::string_view view() const { return {text, length}; }
  char text[32];
  std::size_t length;
};

constexpr std::string_view kValue = "a value of some more bytes than one has at hand";

constexpr std::uint64_t kKeys = 1300;  // a segment splits at 1150
/// If all allocations fail from then on, so many more writes are refused like the first one; then
/// the test fails.
constexpr int kRefusalsMost = 60;

/// Which keys have a value, without the heap.
using There = std::array<bool, kKeys>;

/// Puts new keys with a heap that fails; whether it has.
bool put_all(HashFixture& f, std::int64_t n, Failure failure, There& there) {
  test::FailingHeap heap(n, failure);
  int refusals = 0;
  for (std::uint64_t i = 0; i < kKeys && refusals != kRefusalsMost; ++i) {
    const auto put = f.map->put(f.thread, Key(i).view(), kValue);
    there[i] = put.has_value();
    refusals += put ? 0 : 1;
    if (!put && put.error().code != Code::out_of_memory) std::abort();
  }
  heap.stop();
  return heap.failed();
}

/// Replaces every other key and erases the rest, with a heap that fails; whether it has.
bool change_all(HashFixture& f, std::int64_t n, Failure failure, There& there) {
  test::FailingHeap heap(n, failure);
  int refusals = 0;
  for (std::uint64_t i = 0; i < kKeys && refusals != kRefusalsMost; ++i) {
    const auto changed = i % 2 == 0 ? f.map->put(f.thread, Key(i).view(), kValue)
                                    : f.map->erase(f.thread, Key(i).view());
    if (i % 2 != 0 && changed) there[i] = false;
    refusals += changed ? 0 : 1;
    if (!changed && changed.error().code != Code::out_of_memory) std::abort();
  }
  heap.stop();
  return heap.failed();
}

void expect_just(HashFixture& f, const There& there) {
  EXPECT_EQ(f.map->numbers().entries, static_cast<std::uint64_t>(std::ranges::count(there, true)));
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    ASSERT_EQ(f.get(Key(i).view()).has_value(), there[i]) << i;
  }
  EXPECT_EQ(f.faults(), "");
}

TEST(HeapHash, NewKeysWithoutAHeapAreThereOrNot) {
  for (const Failure failure : {Failure::once, Failure::for_good}) {
    std::uint64_t failures = 0;
    bool failed = true;
    for (std::int64_t n = 0; failed; ++n) {
      HashFixture f({.partitions = 1}, std::uint64_t{64} << 20);
      There there{};
      failed = put_all(f, n, failure, there);
      failures += failed ? 1 : 0;
      expect_just(f, there);
      for (std::uint64_t i = 0; i < kKeys; ++i) ASSERT_TRUE(f.put(Key(i).view(), kValue).applied);
      there.fill(true);
      expect_just(f, there);
    }
    EXPECT_GT(failures, 10u);
  }
}

TEST(HeapHash, ChangesWithoutAHeapHappenOrNot) {
  for (const bool held : {false, true}) {
    for (const Failure failure : {Failure::once, Failure::for_good}) {
      std::uint64_t failures = 0;
      bool failed = true;
      for (std::int64_t n = 0; failed; n += n < 20 ? 1 : 5) {
        HashFixture f({.partitions = 1}, std::uint64_t{64} << 20);
        There there{};
        for (std::uint64_t i = 0; i < kKeys; ++i) f.put(Key(i).view(), kValue);
        there.fill(true);
        std::optional<HashSnapshot> snapshot;
        if (held) snapshot = f.map->hold(f.thread).value();
        failed = change_all(f, n, failure, there);
        failures += failed ? 1 : 0;
        expect_just(f, there);
        for (std::uint64_t i = 0; snapshot && i < kKeys; ++i) {
          HashReader reader(*f.map, f.thread, *snapshot);
          ASSERT_TRUE(reader.get(Key(i).view()).found);
        }
        if (snapshot) f.map->drop(*snapshot);
        for (std::uint64_t i = 0; i < kKeys; ++i) {
          ASSERT_TRUE(f.map->erase(f.thread, Key(i).view()));
        }
        f.map->give_back(f.thread);
        f.map->give_back(f.thread);
        expect_just(f, There{});
      }
      EXPECT_GT(failures, 3u);
    }
  }
}

/// A clock by which a hold of releases ends after a thousand readings.
std::uint64_t ticking_ns() noexcept {
  static std::uint64_t now = 0;
  return now += 1000;
}

TEST(HeapHash, AValueThatCannotBeCopiedLeavesNoEpochExposed) {
  HashFixture f({.partitions = 1}, std::uint64_t{64} << 20);
  f.put("counter", std::string(8, '\0'));
  f.put("long", std::string(1000, 'v'));
  const std::function<std::optional<std::string>(std::optional<std::string_view>)> change =
      [](std::optional<std::string_view> now) { return std::optional<std::string>(now); };
  bool thrown = false;
  {
    test::FailingHeap heap(0, Failure::for_good);
    try {
      (void)f.map->modify(f.thread, "long", change);
    } catch (const std::bad_alloc&) {
      thrown = true;
    }
  }
  EXPECT_TRUE(thrown);
  EXPECT_EQ(f.thread.slot.exposed(), 0u);
  EXPECT_EQ(*f.map->add(f.thread, "counter", 3), 3u);
  EXPECT_EQ(f.get("long"), std::string(1000, 'v'));
}

// Releases are held, so that completions wait in a list for which there is no memory.
TEST(HeapHash, APipelineCompletesAllWritesWithoutAHeap) {
  HashFixture f({.partitions = 1}, std::uint64_t{64} << 20);
  constexpr std::size_t kWrites = 800;
  static std::array<Request, kWrites> requests;
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < kWrites; ++i) keys.push_back("key" + std::to_string(i % 20));
  for (std::size_t i = 0; i < kWrites; ++i) {
    requests[i] = {Op::put, 0, i, keys[i], {}, kValue};
  }
  std::array<int, kWrites> completions{};
  const auto done = [&](const Completion& completion) { ++completions[completion.tag]; };
  HashPipeline pipeline(*f.map, f.thread);
  pipeline.run(std::span(requests).first(200), done);
  completions.fill(0);
  f.map->clock().set_time(ticking_ns);
  ASSERT_NE(f.map->clock().hold(), 0u);
  {
    test::FailingHeap heap(0, Failure::for_good);
    pipeline.run(requests, done);
    heap.stop();
    EXPECT_TRUE(heap.failed());
  }
  EXPECT_EQ(std::ranges::count(completions, 1), static_cast<std::ptrdiff_t>(kWrites));
  EXPECT_EQ(f.faults(), "");
}

}  // namespace
}  // namespace espalier::hash

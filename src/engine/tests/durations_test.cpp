// SPDX-License-Identifier: Apache-2.0
#include "engine/durations.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <string>
#include <thread>

#include "engine/tests/testing/scheduler_fixture.hpp"

namespace espalier::offload {
namespace {

TEST(Durations, ABoundBelongsToTheBucketThatItEnds) {
  EXPECT_EQ(DurationCounts::bucket_of(0), 0u);
  EXPECT_EQ(DurationCounts::bound_ns(0), 256u);
  EXPECT_EQ(DurationCounts::bound_ns(1), 384u);
  EXPECT_EQ(DurationCounts::bound_ns(2), 512u);
  EXPECT_EQ(DurationCounts::bound_ns(DurationCounts::kBounds - 1), std::uint64_t{1} << 34);
  for (std::size_t i = 0; i < DurationCounts::kBounds; ++i) {
    const std::uint64_t bound = DurationCounts::bound_ns(i);
    EXPECT_EQ(DurationCounts::bucket_of(bound), i);
    EXPECT_EQ(DurationCounts::bucket_of(bound + 1), i + 1);
  }
  EXPECT_EQ(DurationCounts::bucket_of(~std::uint64_t{0}), DurationCounts::kBounds);
}

TEST(Durations, AreAddedUp) {
  Durations one;
  one.record(100);
  one.record(300);
  Durations other;
  other.record(300);
  DurationCounts sum = one.read();
  sum += other.read();
  EXPECT_EQ(sum.buckets[0], 1u);
  EXPECT_EQ(sum.buckets[1], 2u);
  EXPECT_EQ(sum.sum_ns, 700u);
}

TEST(DurationsConcurrency, AreReadWhileTheyAreCounted) {
  constexpr std::uint64_t kCount = 100'000;
  Durations durations;
  std::atomic<bool> done{false};
  std::thread reader([&] {
    std::uint64_t before = 0;
    do {
      const std::uint64_t now = durations.read().buckets[3];
      EXPECT_GE(now, before);
      before = now;
    } while (!done.load(std::memory_order_acquire));
  });
  for (std::uint64_t i = 0; i < kCount; ++i) durations.record(600);
  done.store(true, std::memory_order_release);
  reader.join();
  EXPECT_EQ(durations.read().buckets[3], kCount);
  EXPECT_EQ(durations.read().sum_ns, kCount * 600);
}

std::uint64_t timed(const Scheduler& scheduler, wire::OffloadId offload) {
  const DurationCounts counts =
      scheduler.counts().durations[static_cast<std::size_t>(offload)].read();
  return std::accumulate(counts.buckets.begin(), counts.buckets.end(), std::uint64_t{0});
}

TEST(SchedulerDurations, AboutOneRequestInSixtyFourIsTimed) {
  SchedulerFixture node;
  auto& client = node.connect();
  std::uint32_t tag = 0;
  constexpr std::uint32_t kRequests = 6400;
  for (std::uint32_t i = 0; i < kRequests; ++i) {
    const auto offload = i % 64 == 0 ? wire::OffloadId::put : wire::OffloadId::get;
    const Response response = node.call(client, request_of(offload, node.map(), ++tag, 0), "key");
    ASSERT_TRUE(response.answers());
  }
  const std::uint64_t gets = timed(node.scheduler(), wire::OffloadId::get);
  const std::uint64_t puts = timed(node.scheduler(), wire::OffloadId::put);
  // A request that comes every 64th time is timed as rarely as others.
  EXPECT_GE(gets + puts, kRequests / 128);
  EXPECT_LE(gets + puts, kRequests / 32);
  EXPECT_LE(puts, 20u);
  EXPECT_EQ(timed(node.scheduler(), wire::OffloadId::noop), 0u);
}

// A place in flight is reused by requests that never reach an offload.
TEST(SchedulerDurations, RequestsOfNoOffloadAreNotTimed) {
  SchedulerFixture node;
  auto& client = node.connect();
  for (std::uint32_t i = 0; i < 1000; ++i) {
    wire::RequestHeader header = request_of(wire::OffloadId::noop, 0, i, 0);
    header.offload = i % 2 == 0 ? 200 : header.offload;
    ASSERT_TRUE(node.call(client, header).answers());
  }
  const std::uint64_t noops = timed(node.scheduler(), wire::OffloadId::noop);
  EXPECT_GE(noops, 1u);
  EXPECT_LE(noops, 500u / 16);
}

}  // namespace
}  // namespace espalier::offload

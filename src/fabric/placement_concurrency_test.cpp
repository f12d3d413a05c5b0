// SPDX-License-Identifier: Apache-2.0
// Threads that write into one persistent region while its owner looks at it.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/random.hpp"
#include "fabric/shared_copy.hpp"
#include "fabric/shm/testing/shm_fixture.hpp"

namespace espalier::fabric {
namespace {

constexpr std::uint64_t kPlaceBytes = 4096;
constexpr std::size_t kWriters = 2;
constexpr std::uint64_t kNumberAt = 2048;  // in a place; its bytes begin at 0

/// A target with persistent memory, which any number of clients reach over `shm`.
struct PersistentTarget {
  PersistentTarget() : memory(*memory::SharedMemory::create("test", kWriters * kPlaceBytes)) {
    EXPECT_TRUE(target.endpoint->listen(path()));
    OfferedMemory offered{memory.at(0), memory.bytes(), memory.descriptor(), 0};
    offered.kind = MemoryKind::persistent;
    region = *target.table->offer(offered, RemoteRights::read | RemoteRights::write);
  }
  [[nodiscard]] std::string path() const { return (folder / "socket").string(); }

  base::TemporaryFolder folder;
  memory::SharedMemory memory;
  shm::Side target;
  Registration region;
  std::vector<std::unique_ptr<QueuePair>> pairs;
};

void write_rounds(shm::Side& client, const RemoteRegion& remote, std::uint64_t place,
                  std::uint64_t rounds) {
  std::array<std::uint64_t, 24> bytes{};
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    bytes.fill(round);
    const std::array requests{
        WorkRequest::write(1, std::as_bytes(std::span(bytes)), remote.key, remote.at(place)),
        WorkRequest::write(2, std::as_bytes(std::span(&round, 1)), remote.key,
                           remote.at(place + kNumberAt))};
    ASSERT_EQ(client.pair->post(requests).taken, 2u);
    for (int ended = 0; ended < 2;) {
      const auto completion = client.take(client.sends);
      if (!completion) {
        client.endpoint->progress();
        continue;
      }
      ASSERT_EQ(completion->status, Status::success);
      ++ended;
    }
  }
}

// Stores past the cache have no order of their own that a processor promises: the fence behind each
// WRITE keeps a number from being seen before the bytes that it announces. The processors at hand
// show none of that without the fence either, so this is a stress test of the counters too; the
// fence itself is checked by placement_planted_test.cpp.
TEST(PlacementConcurrency, WhoSeesALaterWriteSeesTheEarlierOne) {
  constexpr std::uint64_t kRounds = 20'000;
  PersistentTarget persistent;
  std::array<shm::Side, kWriters> clients;
  for (shm::Side& client : clients) {
    shm::connect(client, persistent.target, persistent.path(), client.options(),
                 persistent.target.options());
    persistent.pairs.push_back(std::move(persistent.target.pair));
  }
  const std::uint64_t rounds = base::kThreadSanitizer ? kRounds / 20 : kRounds;
  std::atomic<std::size_t> over{0};
  std::vector<std::jthread> writers;
  for (std::size_t i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] {
      write_rounds(clients[i], persistent.region.remote(), i * kPlaceBytes, rounds);
      ++over;
    });
  }
  std::uint64_t seen = 0;
  while (over.load() != kWriters) {
    persistent.target.endpoint->progress();
    for (std::size_t i = 0; i < kWriters; ++i) {
      const std::byte* const place = persistent.memory.at(i * kPlaceBytes);
      const auto number =
          base::load_shared<std::uint64_t>(place + kNumberAt, std::memory_order_acquire);
      std::array<std::uint64_t, 24> bytes{};
      copy_from_shared(reinterpret_cast<std::byte*>(bytes.data()), place, sizeof bytes);
      for (const std::uint64_t word : bytes) ASSERT_GE(word, number);
      seen += number;
    }
  }
  EXPECT_GT(seen, 0u);
  std::uint64_t granules = 0;
  for (shm::Side& client : clients) {
    const PlacedCounts counts = client.table->placed().counts();
    EXPECT_EQ(counts.persistent_bytes, rounds * (24 + 1) * 8);
    granules += counts.granules;
  }
  EXPECT_EQ(granules, kWriters * rounds * 2);
}

// Several threads count in one table.
TEST(PlacementConcurrency, NoWriteIsCountedTwiceOrNotAtAll) {
  PlacedCounter counter;
  constexpr std::uint64_t kCounted = 50'000;
  std::vector<std::jthread> threads;
  for (std::uintptr_t i = 0; i < 4; ++i) {
    threads.emplace_back([&counter, i] {
      const auto* const at = reinterpret_cast<const std::byte*>(kGranuleBytes * (i + 1));
      const Placement placement{MemoryKind::persistent, i % 2 == 0};
      for (std::uint64_t n = 0; n < kCounted; ++n) counter.count(at, 64, placement);
    });
  }
  threads.clear();
  const PlacedCounts counts = counter.counts();
  EXPECT_EQ(counts.persistent_bytes, 4 * kCounted * 64);
  EXPECT_EQ(counts.past_cache_bytes, 2 * kCounted * 64);
  EXPECT_EQ(counts.cached_lines, 2 * kCounted);
  // Two writers by turns, or one of them several times in its own granule.
  EXPECT_GE(counts.granules, 2u);
  EXPECT_LE(counts.granules, 2 * kCounted);
}

}  // namespace
}  // namespace espalier::fabric

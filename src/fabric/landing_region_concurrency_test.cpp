// SPDX-License-Identifier: Apache-2.0
// Landing regions that a peer changes while they are read, or that are given back under its WRITEs.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/random.hpp"
#include "fabric/landing_region.hpp"

namespace espalier::fabric {
namespace {

/// What a session says of a request that lies in its landing region.
struct RequestHead {
  std::uint64_t offset;
  std::uint64_t length;
  std::uint64_t check;  // of both, by which a head that was put together of two is known
  std::uint64_t reserved;
};
std::uint64_t check_of(const RequestHead& head) { return head.offset * 3 + head.length * 7 + 1; }

// A peer that maps the region writes heads and payloads of all kinds, and punches holes, without
// end, while we read heads once, clamp, and read what they name.
TEST(LandingRegionConcurrency, AHostilePeerChangesBytesUnderTheReader) {
  constexpr std::uint64_t kBytes = 8 * kPageBytes;
  constexpr int kReads = 2000;
  const std::uint64_t seed = base::seed_from_environment(26);
  const auto table = *RegionTable::create(seed);
  const auto region = *LandingRegion::create(*table, {kBytes, 0, true});
  // As a peer over `shm` gets it.
  auto mapping = *table->mapping(region.remote().key, 0);
  const auto file = *memory::copy_descriptor(mapping.descriptor, memory::Rights::write);
  const auto theirs =
      *memory::SharedMemory::attach(std::move(mapping.descriptor), kBytes, memory::Rights::write);
  std::atomic<bool> stop{false};
  std::jthread peer([&] {
    base::Random random(seed);
    while (!stop.load(std::memory_order_relaxed)) {
      const RequestHead head{random() >> random.below(64), random() >> random.below(64), 0, 0};
      base::store_shared(theirs.at(0), head.offset);
      base::store_shared(theirs.at(8), head.length);
      base::store_shared(theirs.at(16), check_of(head));
      // Payload: each word is one of two, so that one put together of both is known.
      const std::uint64_t word = random.chance(0.5) ? ~std::uint64_t{0} : 0;
      for (std::uint64_t i = 64; i < kBytes; i += 8) base::store_shared(theirs.at(i), word);
      if (random.chance(0.05)) {
        ::fallocate(file.number(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                    static_cast<off_t>(kBytes));
      }
    }
  });
  std::vector<std::byte> into(kBytes);
  int whole = 0;
  int mixed = 0;
  int changed = 0;
  std::uint64_t last = 0;
  // Until it has changed between two reads often enough: reading twice would have fallen for that.
  for (int i = 0; i < kReads || changed < 20 || whole < 20; ++i) {
    const auto head = region.read_once<RequestHead>(0);
    ASSERT_TRUE(head);
    (head->check == check_of(*head) ? whole : mixed) += 1;
    changed += std::exchange(last, head->check) != head->check ? 1 : 0;
    // Whatever it says: no more is copied than there is, and not more than there is room for.
    const std::size_t room = std::min<std::uint64_t>(head->length, into.size());
    const auto payload = region.read_once(head->offset, std::span(into).first(room));
    ASSERT_LE(payload.size(), room);
    ASSERT_EQ(payload.size(),
              head->offset < kBytes ? std::min<std::uint64_t>(room, kBytes - head->offset) : 0u);
    const auto words = region.read_once(64, std::span(into).first(kBytes - 64));
    for (std::size_t w = 0; w < words.size(); w += 8) {
      const auto word = base::load_plain<std::uint64_t>(words.data() + w);
      ASSERT_TRUE(word == 0 || word == ~std::uint64_t{0}) << word;
    }
  }
  stop.store(true);
  RecordProperty("whole", std::to_string(whole));
  RecordProperty("mixed", std::to_string(mixed));
}

bool is_all_threes(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{3}; });
}

// The peer's WRITEs are done by a thread of ours, which gives the region back under it.
TEST(LandingRegionConcurrency, GivingItBackWaitsForWritesThatBegan) {
  constexpr std::uint64_t kBytes = 4 * kPageBytes;
  const auto table = *RegionTable::create(base::seed_from_environment(27));
  std::atomic<RegionKey> key{0};
  std::atomic<std::uint64_t> address{0};
  std::atomic<std::uint64_t> written{0};
  std::atomic<bool> stop{false};
  std::jthread target([&] {
    RegionTable::Reader reader(*table);
    const std::vector<std::byte> from(kBytes, std::byte{3});
    while (!stop.load()) {
      reader.enter();
      std::byte* const at = reader.find(key.load(), address.load(), kBytes, RemoteRights::write, 0);
      // To memory that is mapped no more this would be the end.
      for (std::uint64_t i = 0; at != nullptr && i < kBytes; i += 8) {
        base::store_shared(at + i, base::load_plain<std::uint64_t>(from.data() + i));
      }
      if (at != nullptr) written.fetch_add(1);
      reader.leave();
    }
  });
  for (int round = 0; round < 200; ++round) {
    auto region = *LandingRegion::create(*table, {kBytes, 0, round % 2 == 0});
    const std::uint64_t before = written.load();
    address.store(region.remote().base);
    key.store(region.remote().key);
    while (written.load() == before) std::this_thread::yield();
    std::array<std::byte, kBytes> copy;
    EXPECT_TRUE(is_all_threes(region.read_once(0, copy)));
    region.give_back();
  }
  stop.store(true);
}

}  // namespace
}  // namespace espalier::fabric

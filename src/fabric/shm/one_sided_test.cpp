// SPDX-License-Identifier: Apache-2.0
// READ, WRITE and atomics through mappings: what they do, what they refuse, and that a target which
// does nothing is enough.
#include "fabric/shm/one_sided.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/testing/open_descriptors.hpp"
#include "fabric/shm/testing/shm_fixture.hpp"

namespace espalier::fabric::shm {
namespace {

TEST(ShmOneSidedConcurrency, ReadsWhatIsThere) {
  Connected two;
  std::memcpy(two.memory.at(100), "some words", 10);
  std::array<std::byte, 10> into;
  const Completion done =
      two.run(WorkRequest::read(7, into, two.remote().key, two.remote().at(100)));
  EXPECT_EQ(done.status, Status::success);
  EXPECT_EQ(done.work_id, 7u);
  EXPECT_EQ(done.opcode, Opcode::read);
  EXPECT_EQ(done.bytes, 10u);
  EXPECT_EQ(done.pair, two.client.pair->number());
  EXPECT_EQ(text_of(into), "some words");
}

TEST(ShmOneSidedConcurrency, CopiesAnyBytesFromAnywhereToAnywhere) {
  Connected two(1 << 13);
  base::Random random(base::seed_from_environment(1));
  std::vector<std::byte> expected(two.memory.bytes());
  std::vector<std::byte> local(5000);
  for (int i = 0; i < 3000; ++i) {
    const std::size_t bytes = random.chance(0.5) ? random.below(200) : random.below(4200);
    const std::uint64_t remote = random.below(two.memory.bytes() - bytes + 1);
    const std::span<std::byte> near = std::span(local).subspan(random.below(600), bytes);
    const bool write = random.chance(0.5);
    if (write) random.fill(near);
    const std::uint64_t at = two.remote().at(remote);
    const RegionKey key = two.remote().key;
    const Completion done =
        two.run(write ? WorkRequest::write(1, near, key, at) : WorkRequest::read(1, near, key, at));
    ASSERT_EQ(done.status, Status::success);
    if (write) std::copy(near.begin(), near.end(), expected.begin() + remote);
    ASSERT_TRUE(std::equal(near.begin(), near.end(), expected.begin() + remote));
  }
  EXPECT_EQ(std::memcmp(expected.data(), two.memory.at(0), expected.size()), 0);
}

// --- memory that is stored to --------------------------------------------------------------------

/// Asks until it is there.
std::shared_ptr<PeerMemory> mapped(Connected& two, std::uint64_t remote, std::uint64_t bytes) {
  std::shared_ptr<PeerMemory> memory;
  until(two.client, two.target, [&] {
    memory = two.client.pair->writable_memory(two.remote().key, remote, bytes);
    return memory != nullptr;
  });
  return memory;
}

TEST(ShmOneSidedConcurrency, MemoryOfThePeerCanBeStoredTo) {
  Connected two;
  const RemoteRegion& remote = two.remote();
  EXPECT_EQ(two.client.pair->writable_memory(remote.key, remote.base, 64), nullptr);  // not yet
  const auto memory = mapped(two, remote.at(128), 4096);
  ASSERT_EQ(memory->bytes().size(), 4096u);
  EXPECT_TRUE(memory->good());
  std::memcpy(memory->bytes().data() + 8, "some words", 10);
  EXPECT_EQ(text_of({two.memory.at(136), 10}), "some words");
  // What is stored is there before what is said of it.
  std::array<std::byte, 8> into{};
  const Receive receive{1, into};
  ASSERT_EQ(two.target.pair->post_receives({&receive, 1}), 1u);
  two.client.pair->post(WorkRequest::send_immediate(1, {}, 5));
  EXPECT_EQ(two.next(two.target.receives).immediate, 5u);
  // Only what is within the region.
  const auto refused = [&](std::uint64_t at, std::uint64_t bytes) {
    return two.client.pair->writable_memory(remote.key, at, bytes) == nullptr;
  };
  EXPECT_FALSE(refused(remote.base, remote.bytes));
  EXPECT_TRUE(refused(remote.base, remote.bytes + 1));
  EXPECT_TRUE(refused(remote.at(8), remote.bytes));
  EXPECT_TRUE(refused(remote.base - 8, 16));
  EXPECT_TRUE(refused(remote.base, ~std::uint64_t{0}));
  EXPECT_TRUE(refused(~std::uint64_t{0}, 8));
}

TEST(ShmOneSidedConcurrency, MemoryIsStoredToOnlyByAGoodKey) {
  Connected two;
  const RemoteRegion remote = two.remote();
  for (const RegionKey key : {RegionKey{0}, remote.key ^ 0x10000, remote.key ^ 1}) {
    EXPECT_EQ(two.client.pair->writable_memory(key, remote.base, 8), nullptr);
    until(two.client, two.target, [] { return true; });
    EXPECT_EQ(two.client.pair->writable_memory(key, remote.base, 8), nullptr);
  }
  EXPECT_EQ(two.client.pair->state(), QueuePair::State::connected);
  const auto memory = mapped(two, remote.base, 8);
  two.region.revoke();
  EXPECT_FALSE(memory->good());
  EXPECT_EQ(two.client.pair->writable_memory(remote.key, remote.base, 8), nullptr);
}

TEST(ShmOneSidedConcurrency, MemoryIsNotStoredToThatIsToBeReadOnly) {
  Connected two(4096, RemoteRights::read);
  std::array<std::byte, 8> into;
  const RemoteRegion& remote = two.remote();
  ASSERT_EQ(two.run(WorkRequest::read(1, into, remote.key, remote.base)).status, Status::success);
  EXPECT_EQ(two.client.pair->writable_memory(remote.key, remote.base, 8), nullptr);
}

// A thread that stores need not know when the pair ends.
TEST(ShmOneSidedConcurrency, MemoryStaysMappedWhileSomebodyHasIt) {
  Connected two;
  const auto memory = mapped(two, two.remote().base, 64);
  two.client.pair->close();
  EXPECT_EQ(two.client.pair->writable_memory(two.remote().key, two.remote().base, 64), nullptr);
  two.client.pair.reset();
  memory->bytes()[3] = std::byte{7};
  EXPECT_EQ(*two.memory.at(3), std::byte{7});
  EXPECT_TRUE(memory->good());
}

// A refused request for memory fails no work request; a WRITE by that key completes with its own
// status.
TEST(ShmOneSidedConcurrency, AQuestionForMemoryDoesNotEndRequestsOfOthers) {
  Connected two;
  const auto other = *two.target.table->offer(
      {two.memory.at(0), two.memory.bytes(), two.memory.descriptor(), 0}, kAllRights, 9);
  const RegionKey refused = other.remote().key;  // of another domain
  std::array<std::byte, 8> bytes{};
  EXPECT_EQ(two.client.pair->writable_memory(refused, other.remote().base, 8), nullptr);
  const RemoteRegion& remote = two.remote();
  EXPECT_EQ(two.run(WorkRequest::write(1, bytes, remote.key, remote.base)).status, Status::success);
  EXPECT_EQ(two.client.pair->writable_memory(refused, other.remote().base, 8), nullptr);
  EXPECT_EQ(two.run(WorkRequest::write(2, bytes, refused, other.remote().base)).status,
            Status::remote_access);
}

TEST(ShmOneSidedConcurrency, AtomicsTellTheOldValue) {
  Connected two;
  const RegionKey key = two.remote().key;
  const std::uint64_t at = two.remote().at(64);
  std::uint64_t old_value = 99;
  auto* const old_bytes = reinterpret_cast<std::byte*>(&old_value);
  EXPECT_EQ(two.run(WorkRequest::fetch_add(1, key, at, 5, old_bytes)).old_value, 0u);
  EXPECT_EQ(old_value, 0u);
  EXPECT_EQ(two.run(WorkRequest::fetch_add(1, key, at, ~std::uint64_t{0})).old_value, 5u);
  EXPECT_EQ(two.run(WorkRequest::compare_swap(1, key, at, 3, 10)).old_value, 4u);
  EXPECT_EQ(two.run(WorkRequest::compare_swap(1, key, at, 4, 10, old_bytes)).old_value, 4u);
  EXPECT_EQ(old_value, 4u);
  EXPECT_EQ(base::load_shared<std::uint64_t>(two.memory.at(64)), 10u);
}

// A requester that receives this status may retry.
TEST(ShmOneSidedConcurrency, AnAtomicThatIsRefusedHadNoEffect) {
  constexpr RegionKey kKey = 7;
  constexpr std::uint64_t kBytes = 4096;
  const auto attach = [](const memory::SharedMemory& of) {
    return *memory::SharedMemory::attach(memory::Descriptor(::dup(of.descriptor())), kBytes,
                                         memory::Rights::write);
  };
  auto words = *memory::SharedMemory::create("fabric-test", kBytes);
  auto memory = *memory::SharedMemory::create("fabric-test", kBytes);
  PlacedCounter placed;
  OneSided one_sided;
  auto mapped = attach(memory);
  one_sided.open(attach(words), placed);
  const Window window{0, kBytes, mapped.at(0), nullptr, kKey, kAllRights};
  one_sided.insert(window, std::move(mapped));
  auto* const word = const_cast<std::byte*>(word_of(words, kKey));
  std::atomic<bool> over = false;
  std::thread revoker([&] {
    for (int i = 0; i < 200'000; ++i) {
      base::store_shared<RegionKey>(word, i % 2 == 0 ? kKey : 0);
    }
    over = true;
  });
  std::uint64_t made = 0;
  std::uint64_t old = 0;
  const WorkRequest add = WorkRequest::fetch_add(1, kKey, 0, 1);
  while (!over) {
    const OneSided::Outcome outcome = one_sided.run(add, old);
    made += outcome != OneSided::Outcome::access ? 1 : 0;
  }
  revoker.join();
  EXPECT_EQ(base::load_shared<std::uint64_t>(memory.at(0)), made);
}

TEST(ShmOneSidedConcurrency, ATargetThatDoesNothingIsEnough) {
  Connected two;
  std::array<std::byte, 64> local{};
  ASSERT_TRUE(
      two.client.pair->post(WorkRequest::read(1, local, two.remote().key, two.remote().base))
          .taken);
  std::optional<Completion> done;  // only the client makes progress
  while (!(done = two.client.take(two.client.sends))) std::this_thread::yield();
  EXPECT_EQ(done->status, Status::success);
  // And what is mapped is done inside post().
  two.client.pair->post(WorkRequest::write(2, local, two.remote().key, two.remote().base));
  EXPECT_EQ(two.client.sends.waiting(), 1u);
}

TEST(ShmOneSidedConcurrency, OnlyWhatIsSignalledIsTold) {
  Connected two;
  std::uint64_t local = 1;
  const auto bytes = std::as_writable_bytes(std::span(&local, 1));
  const auto write = WorkRequest::write(1, bytes, two.remote().key, two.remote().base);
  const WorkRequest requests[] = {write.unsignalled(), write.unsignalled().as_inline(), write};
  EXPECT_EQ(two.client.pair->post(requests).taken, 3u);
  EXPECT_EQ(two.next(two.client.sends).status, Status::success);
  EXPECT_FALSE(two.client.take(two.client.sends));
}

// Posts three: a good one, this one, and another good one.
void expect_end(Connected& two, const WorkRequest& bad, Status status) {
  std::uint64_t local = 0;
  const auto bytes = std::as_writable_bytes(std::span(&local, 1));
  const auto good = WorkRequest::read(1, bytes, two.remote().key, two.remote().base);
  const WorkRequest requests[] = {good, bad.unsignalled(), good};
  EXPECT_EQ(two.client.pair->post(requests).taken, 3u);
  EXPECT_EQ(two.next(two.client.sends).status, Status::success);
  EXPECT_EQ(two.next(two.client.sends).status, status);
  EXPECT_EQ(two.next(two.client.sends).status, Status::flushed);
  two.wait_for_both_ends();
  EXPECT_EQ(two.client.pair->ended_by(), status);
  EXPECT_EQ(two.target.pair->ended_by(), status);
  EXPECT_EQ(two.run(good).status, Status::flushed);
}

TEST(ShmOneSidedConcurrency, RefusesWhatIsNotWhollyWithin) {
  const std::uint64_t bytes = 1 << 16;
  for (const std::uint64_t offset : {bytes - 7, bytes, bytes + 1, ~std::uint64_t{0},
                                     ~std::uint64_t{0} - 6, std::uint64_t{1} << 63}) {
    Connected two;
    std::array<std::byte, 8> local;
    expect_end(two, WorkRequest::read(2, local, two.remote().key, two.remote().at(offset)),
               Status::remote_access);
  }
}

TEST(ShmOneSidedConcurrency, RefusesUnknownKeys) {
  for (const RegionKey change : {0x10000u, 1u, 0xFFFFFFFFu}) {
    Connected two;
    std::array<std::byte, 8> local;
    expect_end(two, WorkRequest::read(2, local, two.remote().key ^ change, two.remote().base),
               Status::remote_access);
  }
  Connected two;
  std::array<std::byte, 8> local;
  expect_end(two, WorkRequest::read(2, local, 0, 0), Status::remote_access);
}

TEST(ShmOneSidedConcurrency, RefusesRegionsOfOtherDomains) {
  Connected two;
  const auto other =
      two.target.table->offer({two.memory.at(0), 4096, two.memory.descriptor(), 0}, kAllRights, 9);
  std::array<std::byte, 8> local;
  expect_end(two, WorkRequest::read(2, local, other->remote().key, other->remote().base),
             Status::remote_access);
}

TEST(ShmOneSidedConcurrency, RefusesWhatWasNotGranted) {
  std::array<std::byte, 8> local;
  {
    Connected two(4096, RemoteRights::read);
    expect_end(two, WorkRequest::write(2, local, two.remote().key, two.remote().base),
               Status::remote_access);
  }
  {
    Connected two(4096, kReadWrite);
    expect_end(two, WorkRequest::fetch_add(2, two.remote().key, two.remote().base, 1),
               Status::remote_access);
  }
  Connected two;
  const auto writable = two.target.table->offer(
      {two.memory.at(0), 4096, two.memory.descriptor(), 0}, RemoteRights::write);
  expect_end(two, WorkRequest::read(2, local, writable->remote().key, writable->remote().base),
             Status::remote_access);
}

TEST(ShmOneSidedConcurrency, RefusesAtomicsOnNoWord) {
  Connected two;
  expect_end(two, WorkRequest::fetch_add(2, two.remote().key, two.remote().at(4), 1),
             Status::remote_invalid);
  // A region that begins between words has none at addresses that look as if.
  Connected odd;
  const auto region =
      odd.target.table->offer({odd.memory.at(4), 4096, odd.memory.descriptor(), 4}, kAllRights);
  expect_end(odd, WorkRequest::fetch_add(2, region->remote().key, region->remote().base, 1),
             Status::remote_invalid);
}

TEST(ShmOneSidedConcurrency, NothingNeedsNoRegion) {
  Connected two;
  EXPECT_EQ(two.run(WorkRequest::read(1, {}, 12345, 678)).status, Status::success);
  EXPECT_EQ(two.run(WorkRequest::write(1, {}, 0, 0)).status, Status::success);
  EXPECT_EQ(two.client.pair->state(), QueuePair::State::connected);
}

TEST(ShmOneSidedConcurrency, MemoryThatIsNotSharedCannotBeMapped) {
  Connected two;
  std::vector<std::byte> own(4096);
  const auto region = two.target.table->offer({own.data(), own.size()}, kAllRights);
  std::array<std::byte, 8> local;
  expect_end(two, WorkRequest::read(2, local, region->remote().key, region->remote().base),
             Status::remote_operation);
}

TEST(ShmOneSidedConcurrency, ARevokedKeyIsSeenAtOnce) {
  Connected two;
  std::array<std::byte, 8> local;
  const auto read = WorkRequest::read(1, local, two.remote().key, two.remote().base);
  EXPECT_EQ(two.run(read).status, Status::success);
  two.region.revoke();
  EXPECT_EQ(two.run(read).status, Status::remote_access);
  two.wait_for_both_ends();
}

TEST(ShmOneSidedConcurrency, ReachesARegionInsideOfItsMemory) {
  Connected two;
  const auto part = two.target.table->offer(
      {two.memory.at(5000), 100, two.memory.descriptor(), 5000}, kReadWrite);
  std::memcpy(two.memory.at(5090), "here", 4);
  std::array<std::byte, 4> local;
  EXPECT_EQ(two.run(WorkRequest::read(1, local, part->remote().key, part->remote().at(90))).status,
            Status::success);
  EXPECT_EQ(text_of(local), "here");
  // The mapping holds more than the region, which no peer that keeps to the protocol reaches.
  expect_end(two, WorkRequest::read(2, local, part->remote().key, part->remote().at(97)),
             Status::remote_access);
}

TEST(ShmOneSidedConcurrency, ReachesMoreRegionsThanItMayMap) {
  Connected two;
  std::vector<Registration> regions;
  constexpr std::size_t kRegions = MappingCache::kMappingsMax + 200;
  for (std::size_t i = 0; i < kRegions; ++i) {
    base::store_plain(two.memory.at(8 * i), std::uint64_t{i});
    regions.push_back(*two.target.table->offer(
        {two.memory.at(8 * i), 8, two.memory.descriptor(), 8 * i}, RemoteRights::read));
  }
  std::uint64_t local = 0;
  const auto bytes = std::as_writable_bytes(std::span(&local, 1));
  for (std::size_t i = 0; i < 2 * kRegions; ++i) {
    const RemoteRegion& remote = regions[i * 7 % kRegions].remote();
    ASSERT_EQ(two.run(WorkRequest::read(1, bytes, remote.key, remote.base)).status,
              Status::success);
    ASSERT_EQ(local, i * 7 % kRegions);
  }
}

TEST(ShmOneSidedConcurrency, OpensNoDescriptorsThatStay) {
  Connected two;
  const auto before = base::open_descriptors();
  std::array<std::byte, 8> local;
  EXPECT_EQ(two.run(WorkRequest::read(1, local, two.remote().key, two.remote().base)).status,
            Status::success);
  // The target's thread closes its copy when it has sent it.
  until(two.client, two.target, [&] { return base::open_descriptors() == before; });
}

TEST(ShmOneSidedConcurrency, WhatMayOnlyBeReadCannotBeMappedToBeWritten) {
  Connected two(4096, RemoteRights::read);
  const auto mapping = two.target.table->mapping(two.remote().key, 0);
  ASSERT_TRUE(mapping);
  void* const at =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, mapping->descriptor.number(), 0);
  EXPECT_EQ(at, MAP_FAILED);
  EXPECT_EQ(errno, EACCES);
}

struct ShmMappingCache : testing::Test {
  void insert(RegionKey key, std::uint64_t bytes = 4096) {
    base::store_shared(words.at((key & 0xFFFF) * 4), key);
    auto memory = *memory::SharedMemory::create("region", bytes);
    const Window window{0, bytes, memory.at(0), word_of(words, key), key, RemoteRights::read};
    cache.insert(window, std::move(memory));
  }

  static constexpr std::uint64_t kBytesMax = 5 * 4096;
  memory::SharedMemory words = *memory::SharedMemory::create("words", RegionTable::kRegionsMax * 4);
  MappingCache cache{kBytesMax};
};

TEST_F(ShmMappingCache, ForgetsWhatWasRevokedWhenItTakesInAnother) {
  insert(0x10001);
  insert(0x10041);  // the same place in the front
  EXPECT_NE(cache.find(0x10001), nullptr);
  EXPECT_NE(cache.find(0x10041), nullptr);
  EXPECT_EQ(cache.find(0x20001), nullptr);
  EXPECT_EQ(cache.find(0), nullptr);
  base::store_shared(words.at(4), RegionKey{0});
  insert(0x10002);
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(cache.find(0x10001), nullptr);
  EXPECT_NE(cache.find(0x10041), nullptr);
}

TEST_F(ShmMappingCache, MapsNoMoreBytesThanItMay) {
  for (const RegionKey key : {0x10001u, 0x10002u, 0x10003u}) insert(key);
  insert(0x10004, 2 * 4096);  // all there may be
  EXPECT_EQ(cache.size(), 4u);
  insert(0x10004, 2 * 4096);  // once more: it counts once
  EXPECT_EQ(cache.size(), 4u);
  insert(0x10005, 4096);
  EXPECT_EQ(cache.size(), 4u);
  EXPECT_NE(cache.find(0x10005), nullptr);
  insert(0x10006, kBytesMax);
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_NE(cache.find(0x10006), nullptr);
  EXPECT_EQ(cache.find(0x10005), nullptr);
  cache.clear();
  for (RegionKey key = 0x10007; key != 0x1000C; ++key) insert(key);
  EXPECT_EQ(cache.size(), 5u);
}

}  // namespace
}  // namespace espalier::fabric::shm

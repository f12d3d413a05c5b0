// SPDX-License-Identifier: Apache-2.0
#include "fabric/region_table.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/random.hpp"

namespace espalier::fabric {
namespace {

constexpr RemoteRights kAll = RemoteRights::read | RemoteRights::write | RemoteRights::atomic;

struct Offered {
  explicit Offered(RemoteRights rights = kAll, Domain domain = 0)
      : table(*RegionTable::create(7)), bytes(4096), reader(*table) {
    region = *table->offer({bytes.data(), bytes.size()}, rights, domain);
  }
  std::byte* find(std::uint64_t offset, std::uint64_t length,
                  RemoteRights rights = RemoteRights::read, Domain domain = 0) {
    const RemoteRegion& remote = region.remote();
    return reader.find(remote.key, remote.at(offset), length, rights, domain);
  }

  std::shared_ptr<RegionTable> table;
  std::vector<std::byte> bytes;
  RegionTable::Reader reader;
  Registration region;
};

TEST(RegionTable, FindsWhatLiesWithin) {
  Offered offered;
  EXPECT_EQ(offered.find(0, 1), offered.bytes.data());
  EXPECT_EQ(offered.find(0, 4096), offered.bytes.data());
  EXPECT_EQ(offered.find(4095, 1), offered.bytes.data() + 4095);
  EXPECT_EQ(offered.find(4096, 0), offered.bytes.data() + 4096);
}

TEST(RegionTable, RefusesWhatIsNotWhollyWithin) {
  Offered offered;
  EXPECT_EQ(offered.find(0, 4097), nullptr);
  EXPECT_EQ(offered.find(4095, 2), nullptr);
  EXPECT_EQ(offered.find(4096, 1), nullptr);
  EXPECT_EQ(offered.find(4097, 0), nullptr);
  EXPECT_EQ(offered.find(std::uint64_t{0} - 1, 1), nullptr);
  EXPECT_EQ(offered.find(std::uint64_t{0} - 1, 2), nullptr);
  // Ends that overflow.
  EXPECT_EQ(offered.find(1, ~std::uint64_t{0}), nullptr);
  EXPECT_EQ(offered.find(8, std::uint64_t{0} - 8), nullptr);
  EXPECT_EQ(
      offered.reader.find(offered.region.remote().key, ~std::uint64_t{0}, 1, RemoteRights::read, 0),
      nullptr);
}

TEST(RegionTable, GrantsNoMoreThanWasOffered) {
  Offered offered(RemoteRights::read);
  EXPECT_NE(offered.find(0, 8, RemoteRights::read), nullptr);
  EXPECT_EQ(offered.find(0, 8, RemoteRights::write), nullptr);
  EXPECT_EQ(offered.find(0, 8, RemoteRights::atomic), nullptr);
  EXPECT_EQ(offered.find(0, 8, RemoteRights::read | RemoteRights::write), nullptr);
}

TEST(RegionTable, IsForOneDomain) {
  Offered offered(kAll, 5);
  EXPECT_EQ(offered.find(0, 8, RemoteRights::read, 0), nullptr);
  EXPECT_NE(offered.find(0, 8, RemoteRights::read, 5), nullptr);
}

TEST(RegionTable, NoOtherKeyOpensIt) {
  Offered offered;
  const RemoteRegion remote = offered.region.remote();
  for (std::uint32_t bit = 0; bit < 32; ++bit) {
    EXPECT_EQ(offered.reader.find(remote.key ^ 1u << bit, remote.base, 1, RemoteRights::read, 0),
              nullptr)
        << bit;
  }
  EXPECT_EQ(offered.reader.find(0, remote.base, 1, RemoteRights::read, 0), nullptr);
}

TEST(RegionTable, RevokedKeysAreNeverGoodAgain) {
  Offered offered;
  const RemoteRegion first = offered.region.remote();
  std::set<RegionKey> seen{first.key};
  RegionKey before = first.key;
  for (int i = 0; i < 1000; ++i) {
    offered.region.revoke();
    EXPECT_EQ(offered.reader.find(before, first.base, 1, RemoteRights::read, 0), nullptr);
    offered.region = *offered.table->offer({offered.bytes.data(), 64}, kAll);
    const RegionKey key = offered.region.remote().key;
    EXPECT_NE(key, before);
    before = key;
    seen.insert(key);
  }
  EXPECT_GT(seen.size(), 900u);  // 2^16 tags, and chance
}

TEST(RegionTable, ARegistrationThatEndsRevokes) {
  Offered offered;
  const RemoteRegion remote = offered.region.remote();
  offered.region = Registration();
  EXPECT_EQ(offered.reader.find(remote.key, remote.base, 1, RemoteRights::read, 0), nullptr);
}

TEST(RegionTable, WordsShowGoodKeys) {
  Offered offered;
  const RegionKey key = offered.region.remote().key;
  const std::byte* word = offered.table->words().at((key & 0xFFFF) * sizeof(RegionKey));
  EXPECT_EQ(base::load_shared<RegionKey>(word), key);
  offered.region.revoke();
  EXPECT_EQ(base::load_shared<RegionKey>(word), 0u);
}

TEST(RegionTable, AVoidKeyBringsZerosToReadsAndNothingElse) {
  Offered offered(kAll, 5);
  const RemoteRegion& remote = offered.region.remote();
  const auto source = [&](std::uint64_t offset, std::uint64_t bytes, Domain domain = 5) {
    return offered.reader.find_source(remote.key, remote.at(offset), bytes, domain).kind;
  };
  using Kind = ReadSource::Kind;
  EXPECT_EQ(source(0, 8), Kind::bytes);
  EXPECT_EQ(source(0, 8, 0), Kind::refused);
  offered.region.make_void();
  EXPECT_EQ(source(0, 8), Kind::zeros);
  EXPECT_EQ(source(0, 4096), Kind::zeros);
  EXPECT_EQ(source(0, 4097), Kind::refused);
  EXPECT_EQ(source(4095, ~std::uint64_t{0}), Kind::refused);
  EXPECT_EQ(source(0, 8, 0), Kind::refused);
  for (const RemoteRights rights :
       {RemoteRights::read, RemoteRights::write, RemoteRights::atomic, RemoteRights::none}) {
    EXPECT_EQ(offered.find(0, 8, rights, 5), nullptr);
  }
  // The word in its place is no key, and no other key is void.
  EXPECT_FALSE(offered.reader.find_source(~remote.key, remote.base, 8, 5));
  EXPECT_EQ(offered.reader.find(~remote.key, remote.base, 8, RemoteRights::read, 5), nullptr);
  EXPECT_FALSE(offered.reader.find_source(remote.key ^ 0x10000, remote.base, 8, 5));
  EXPECT_FALSE(offered.reader.find_source(0, remote.base, 8, 5));
  offered.region.make_void();
  EXPECT_EQ(source(0, 8), Kind::zeros);
}

TEST(RegionTable, AVoidKeyKeepsItsPlaceUntilItIsRevoked) {
  const auto table = *RegionTable::create(1);
  RegionTable::Reader reader(*table);
  std::vector<std::byte> bytes(8);
  const auto offer = [&] { return *table->offer({bytes.data(), bytes.size()}, kAll); };
  auto region = offer();
  const RemoteRegion first = region.remote();
  region.make_void();
  const auto other = offer();
  EXPECT_NE(other.remote().key & 0xFFFF, first.key & 0xFFFF);
  region.revoke();
  EXPECT_FALSE(reader.find_source(first.key, first.base, 8, 0));
  const auto next = offer();
  EXPECT_EQ(next.remote().key & 0xFFFF, first.key & 0xFFFF);
  EXPECT_FALSE(reader.find_source(first.key, first.base, 8, 0));
  // Its end does not make another key void, nor does one that never was.
  table->make_void(first.key);
  table->make_void(0);
  table->make_void(first.key ^ 0x8000);
  EXPECT_EQ(reader.find_source(next.remote().key, next.remote().base, 8, 0).kind,
            ReadSource::Kind::bytes);
}

TEST(RegionTable, WordsShowVoidKeys) {
  Offered offered;
  const RegionKey key = offered.region.remote().key;
  const std::byte* word = offered.table->words().at((key & 0xFFFF) * sizeof(RegionKey));
  offered.region.make_void();
  EXPECT_EQ(base::load_shared<RegionKey>(word), void_word(key));
  EXPECT_NE(void_word(key) & 0xFFFF, key & 0xFFFF);
  offered.region.revoke();
  EXPECT_EQ(base::load_shared<RegionKey>(word), 0u);
}

TEST(RegionTable, OffersAsManyAsThereArePlaces) {
  const auto table = *RegionTable::create(1);
  std::vector<std::byte> bytes(8);
  std::vector<Registration> regions;
  std::set<RegionKey> keys;
  for (std::uint32_t i = 0; i < RegionTable::kRegionsMax - RegionTable::kKeyedMax; ++i) {
    auto region = table->offer({bytes.data(), bytes.size()}, kAll);
    ASSERT_TRUE(region) << i;
    keys.insert(region->remote().key);
    ASSERT_FALSE(RegionTable::is_keyed(region->remote().key));
    regions.push_back(std::move(*region));
  }
  EXPECT_EQ(keys.size(), regions.size());
  const auto more = table->offer({bytes.data(), bytes.size()}, kAll);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Code::out_of_memory);
  regions.pop_back();
  EXPECT_TRUE(table->offer({bytes.data(), bytes.size()}, kAll));
}

TEST(RegionTable, RefusesToOfferNothing) {
  const auto table = *RegionTable::create(1);
  std::byte byte{};
  for (const auto& refused : {table->offer({nullptr, 1}, kAll), table->offer({&byte, 0}, kAll),
                              table->offer({&byte, std::uint64_t{1} << 50}, kAll),
                              table->offer({&byte, 1}, RemoteRights::none)}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::invalid_argument);
  }
}

TEST(RegionTable, AddressesAreAlignedAsTheirBytesAre) {
  const auto table = *RegionTable::create(1);
  alignas(8) std::byte bytes[64] = {};
  for (std::size_t begin = 0; begin < 16; ++begin) {
    const auto region = *table->offer({bytes + begin, 32}, kAll);
    EXPECT_EQ(region.remote().base % 8, begin % 8);
  }
}

TEST(RegionTable, KeysOfTheSystemDiffer) {
  const auto a = *RegionTable::create();
  const auto b = *RegionTable::create();
  std::byte byte{};
  const auto first = *a->offer({&byte, 1}, kAll);
  const auto second = *b->offer({&byte, 1}, kAll);
  EXPECT_NE(first.remote(), second.remote());
}

TEST(RegionTable, HandsOutDescriptorsWithTheRightsOfTheRegion) {
  auto memory = *memory::SharedMemory::create("test", 4096);
  const auto table = *RegionTable::create(3);
  const OfferedMemory offered{memory.at(1024), 1024, memory.descriptor(), 1024};
  const auto readable = *table->offer(offered, RemoteRights::read);
  const auto writable = *table->offer(offered, RemoteRights::write);
  auto read = table->mapping(readable.remote().key, 0);
  auto write = table->mapping(writable.remote().key, 0);
  ASSERT_TRUE(read);
  ASSERT_TRUE(write);
  EXPECT_EQ(read->descriptor_offset, 1024u);
  EXPECT_EQ(read->remote, readable.remote());
  EXPECT_FALSE(
      memory::SharedMemory::attach(std::move(read->descriptor), 4096, memory::Rights::write));
  EXPECT_TRUE(
      memory::SharedMemory::attach(std::move(write->descriptor), 4096, memory::Rights::write));
  EXPECT_EQ(table->mapping(readable.remote().key, 1).error().code, Code::not_found);
  EXPECT_EQ(table->mapping(readable.remote().key ^ 1, 0).error().code, Code::not_found);
  std::byte byte{};
  const auto local = *table->offer({&byte, 1}, kAll);
  EXPECT_EQ(table->mapping(local.remote().key, 0).error().code, Code::unsupported);
  // No peer gets memory by a void key.
  table->make_void(readable.remote().key);
  const auto gone = table->mapping(readable.remote().key, 0);
  ASSERT_TRUE(gone);
  EXPECT_TRUE(gone->is_void);
  EXPECT_FALSE(gone->descriptor);
  EXPECT_EQ(gone->remote, readable.remote());
  EXPECT_EQ(table->mapping(readable.remote().key, 1).error().code, Code::not_found);
}

// After revoke() no thread touches the memory: the thread that revoked writes there without any
// further ado, which ThreadSanitizer would report if a reader were still at it.
TEST(RegionTableConcurrency, RevokingWaitsForAccesses) {
  const std::uint64_t seed = base::seed_from_environment(42);
  const auto table = *RegionTable::create(seed);
  std::array<std::uint64_t, 64> words{};
  std::atomic<RegionKey> key{0};
  std::atomic<std::uint64_t> base_address{0};
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> found{0};
  std::vector<std::jthread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      RegionTable::Reader reader(*table);
      while (!stop.load()) {
        reader.enter();
        const std::byte* at =
            reader.find(key.load(), base_address.load(), sizeof words, RemoteRights::read, 0);
        if (at != nullptr) {
          found.fetch_add(1);
          const auto first = base::load_plain<std::uint64_t>(at);
          for (std::size_t w = 1; w < words.size(); ++w) {
            EXPECT_EQ(base::load_plain<std::uint64_t>(at + 8 * w), first);
          }
        }
        reader.leave();
      }
    });
  }
  for (std::uint64_t round = 1; round <= 50; ++round) {
    words.fill(round);
    auto region = *table->offer({reinterpret_cast<std::byte*>(words.data()), sizeof words},
                                RemoteRights::read);
    const std::uint64_t before = found.load();
    base_address.store(region.remote().base);
    key.store(region.remote().key);
    while (found.load() == before) std::this_thread::yield();
    region.revoke();
  }
  stop.store(true);
}

}  // namespace
}  // namespace espalier::fabric

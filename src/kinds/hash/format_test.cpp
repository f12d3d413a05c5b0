// SPDX-License-Identifier: Apache-2.0
// The bytes of hash maps are what docs/formats/hash.md says.
#include "kinds/hash/format.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/random.hpp"
#include "kinds/hash/key_hash.hpp"
#include "kinds/hash/slot_search.hpp"
#include "kinds/hash/testing/hash_fixture.hpp"

namespace espalier::hash {
namespace {

TEST(HashFormat, WordsHaveTheirBits) {
  EXPECT_EQ(Slot::of(0x1230, 0x7FF, 0x5A5).bits, 0x2D2F'FE00'0000'0123u);
  EXPECT_EQ(Slot::of(0x1230, 0x7FF, 0x5A5, true).bits, 0x6D2F'FE00'0000'0123u);
  EXPECT_EQ(Slot::overflow_at(211).bits, 0x8000'0000'0000'00D3u);
  EXPECT_EQ(BucketWord::of(0x0FFF'FFFF, 12, true, 7).bits, 0xFFFF'FFD9'0000'0007u);
  EXPECT_EQ(PlaceWord::of(0x4000, 3, 5).bits, 0x0000'0C50'0000'0020u);
}

TEST(HashFormat, WordsSayWhatTheyWereMadeOf) {
  const std::uint64_t far = ((std::uint64_t{1} << 45) - 1) & ~std::uint64_t{15};
  const Slot slot = Slot::of(far, 1023, 2047);
  EXPECT_EQ(slot.offset(), far);
  EXPECT_EQ(slot.generation(), 1023u);
  EXPECT_EQ(slot.tag(), 2047u);
  EXPECT_FALSE(slot.is_link() || slot.is_overflow() || slot.empty());
  const BucketWord word = BucketWord::of(77, 12, false, 0xFFFF'FFFF);
  EXPECT_EQ(word.generation(), 77u);
  EXPECT_EQ(word.depth(), 12u);
  EXPECT_EQ(word.changes(), 0xFFFF'FFFFu);
  EXPECT_FALSE(word.pending());
  const PlaceWord place = PlaceWord::of(std::uint64_t{1} << 44, 0x3F'FFFF, 12);
  EXPECT_EQ(place.offset(), std::uint64_t{1} << 44);
  EXPECT_EQ(place.generation(), 0x3F'FFFFu);
  EXPECT_EQ(place.depth(), 12u);
}

TEST(HashFormat, HeaderHasItsBytes) {
  HashHeader header{};
  header.map_id = 1;
  header.generation = 2;
  header.created = 3;
  header.superseded = 4;
  header.magic = kHashMagic;
  header.format = kHashFormat;
  header.partitions = 64;
  header.versions = 1;
  header.seed[0] = 5;
  header.seed[1] = 6;
  header.read_version = 7;
  header.write_version = 8;
  header.clock_offset = 9;
  const auto eight = [](char first) { return std::string(1, first) + std::string(7, '\0'); };
  std::string bytes("\x01\0\0\0\x02\0\0\0", 8);
  bytes += eight(3) + eight(4) + "ELIRHASH" + std::string("\x03\0\0\0\x40\0\0\0", 8) + eight(1);
  bytes += eight(5) + eight(6) + eight(7) + eight(9) + std::string(48, '\0') + eight(8) +
           std::string(56, '\0');
  EXPECT_EQ(base::bytes_of(header), bytes);
  EXPECT_EQ(base::bytes_of(HashShape{0x04030201, 5, 6, 0x0807, 0x100F0E0D0C0B0A09}),
            "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0A\x0B\x0C\x0D\x0E\x0F\x10");
}

// Computed by another program, from docs/formats/hash.md.
TEST(HashFormat, KeysHaveTheseHashes) {
  const HashSeed seed{0x0123'4567'89AB'CDEF, 0xFEDC'BA98'7654'3210};
  const std::vector<std::pair<std::string, std::uint64_t>> hashes = {
      {"a", 0x96BB'4F5F'314A'7066},
      {"ab", 0x3919'802B'243D'9355},
      {"abc", 0x3D4D'AEDC'E08A'EE88},
      {"abcd", 0xC5D3'F724'2B47'0CAE},
      {"1234567", 0x59E8'D866'5047'4141},
      {"12345678", 0xE4A2'B639'E091'2FC8},
      {"123456789abcdef0", 0xE061'E59A'07DC'3BDE},
      {"123456789abcdef01", 0xCDAF'954E'C031'999F},
      {"0123456789abcdef0123456789abcdef", 0x8B2C'30CE'904A'AE99},
      {std::string(100, 'x'), 0xD5DB'701F'7466'473C},
  };
  for (const auto& [key, hash] : hashes) EXPECT_EQ(hash_key(key, seed), hash) << key;
}

// Readers from elsewhere compute it too.
TEST(HashFormat, HashesAreTheSameForEver) {
  const HashSeed seed{0x0123'4567'89AB'CDEF, 0xFEDC'BA98'7654'3210};
  EXPECT_EQ(hash_key("a", seed), hash_key("a", seed));
  EXPECT_NE(hash_key("a", seed), hash_key("aa", seed));
  EXPECT_NE(hash_key("a", seed), hash_key("a", HashSeed{seed.first + 1, seed.second}));
  const KeyHash hash(0xFFFF'FFFF'FFFF'FFFF, 6);
  EXPECT_EQ(hash.partition(), 63u);
  EXPECT_EQ(hash.prefix(12), 4095u);
  EXPECT_EQ(hash.tag(), 2047u);
  EXPECT_EQ(hash.bin(), kBinsPerSegment - 1);
  EXPECT_EQ(KeyHash(0, 0).tag(), 1u);
  EXPECT_EQ(KeyHash(0, 0).partition(), 0u);
  EXPECT_EQ(KeyHash(std::uint64_t{1} << 49, 0).prefix(1), 1u);
  EXPECT_TRUE(KeyHash(std::uint64_t{1} << 49, 6).bit_at(0));
  EXPECT_EQ(KeyHash(std::uint64_t{1} << 63, 6).partition(), 37u);
  EXPECT_EQ(KeyHash(std::uint64_t{1} << 62, 6).partition(), 20u);
  EXPECT_EQ(KeyHash(std::uint64_t{1} << 63, 0).partition(), 0u);
  EXPECT_EQ(KeyHash(std::uint64_t{0x1234} << 50 | 5, 6).order(), std::uint64_t{5} << 14 | 0x1234);
  EXPECT_EQ(KeyHash::of_order(hash.order() - 7, 6).order(), hash.order() - 7);
}

// So their segments are not due to be split at one time.
TEST(HashFormat, PartitionsHavePartsThatGrowFromOneToTheNextUpToTwiceTheFirst) {
  for (const std::uint32_t bits : {1u, 4u, 6u, 9u}) {
    std::vector<std::uint32_t> parts(std::size_t{1} << bits);
    for (std::uint64_t at = 0; at < 1 << 14; ++at) {
      const std::uint32_t partition = KeyHash(at << 50 | 0x3'FFFF'FFFF'FFFF, bits).partition();
      ASSERT_LT(partition, parts.size());
      ++parts[partition];
    }
    const double mean = 16384.0 / static_cast<double>(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const double along = (static_cast<double>(i) + 0.5) / static_cast<double>(parts.size());
      const double wanted = mean * std::exp2(along) * std::log(2);
      EXPECT_NEAR(parts[i], wanted, 0.09 * wanted + 2) << bits << " " << i;
    }
  }
}

// Each of 2^16 keys falls into a bin, and into an entry of a directory, as if drawn.
TEST(HashFormat, HashesSpreadKeys) {
  const HashSeed seed{1, 2};
  std::vector<int> bins(kBinsPerSegment);
  std::vector<int> prefixes(64);
  std::vector<int> tags(2048);
  constexpr int kKeys = 1 << 16;
  for (int i = 0; i < kKeys; ++i) {
    const KeyHash hash(hash_key("key:" + std::to_string(i), seed), 6);
    ++bins[hash.bin()];
    ++prefixes[hash.prefix(6)];
    ++tags[hash.tag()];
  }
  const auto expect_even = [&](const std::vector<int>& counts) {
    const double mean = static_cast<double>(kKeys) / static_cast<double>(counts.size());
    double square = 0;
    for (const int count : counts) square += (count - mean) * (count - mean) / mean;
    const auto freedom = static_cast<double>(counts.size());
    EXPECT_LT(square, freedom + 6 * std::sqrt(2 * freedom));
  };
  expect_even(bins);
  expect_even(prefixes);
  expect_even(tags);
}

TEST(HashFormat, SlotsAreFoundByVectorsAsOneByOne) {
  base::Random random(base::seed_from_environment(40));
  alignas(64) Bucket bucket;
  for (int i = 0; i < 20'000; ++i) {
    bucket.header = random();
    for (std::uint64_t& slot : bucket.slots) {
      slot =
          random.below(4) == 0 ? 0 : Slot::of(random() % (1u << 30), 1, random.between(1, 3)).bits;
      if (random.below(8) == 0) slot |= Slot::kLink;
      if (random.below(8) == 0) slot = Slot::overflow_at(211).bits;
    }
    const auto* const bytes = reinterpret_cast<const std::byte*>(&bucket);
    for (std::uint64_t tag = 1; tag < 5; ++tag) {
      ASSERT_EQ(matching_slots(bytes, tag), matching_slots_scalar(bytes, tag));
    }
  }
}

TEST(HashFormat, RecordsLieAsDrawn) {
  HashFixture fixture({.partitions = 1, .seed = HashSeed{1, 2}});
  fixture.put("key", "value");
  const HashView& view = *fixture.map;
  const KeyHash hash = view.hash("key");
  const Looked looked = look_up(view, hash, "key", kAnyVersion, true);
  ASSERT_EQ(looked.look, Look::found);
  const auto* const at = reinterpret_cast<const char*>(view.image + looked.record.offset());
  EXPECT_EQ(std::string(at, 8), std::string("\x01\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(std::string(at + 12, 12), std::string("\x03\0\x05\0keyvalue", 12));
}

}  // namespace
}  // namespace espalier::hash

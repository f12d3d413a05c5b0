// SPDX-License-Identifier: Apache-2.0
// Keys that were chosen by a map's seed, for one bin or for one prefix of a directory: they are
// bounded, and others go on; and as many keys as there are that were not chosen.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.hpp"
#include "kinds/hash/hash_walk.hpp"
#include "kinds/hash/testing/hash_fixture.hpp"

namespace espalier::hash {
namespace {

TEST(ChosenKeys, KeysMadeForOneBinAreRefusedAndHarmNoOther) {
  HashFixture f({.partitions = 1, .seed = HashSeed{3, 4}});
  f.put("bystander", "1");
  const auto keys = keys_of_one_bin(*f.map, 80, 17);
  std::size_t stored = 0;
  for (; stored < keys.size(); ++stored) {
    const auto put = f.map->put(f.thread, keys[stored], "x");
    if (put) continue;
    EXPECT_EQ(put.error().code, Code::exhausted);
    break;
  }
  EXPECT_EQ(stored, kChainMax * (kSlotsPerBucket - 1) + 1);
  EXPECT_EQ(f.faults(), "");
  EXPECT_LE(audit(*f.map).longest_chain, kChainMax);
  // Replacing and erasing goes on, and so does the rest.
  EXPECT_TRUE(f.map->put(f.thread, keys[0], "y"));
  EXPECT_TRUE(f.map->erase(f.thread, keys[1]));
  EXPECT_TRUE(f.map->put(f.thread, keys[stored], "z"));
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    const auto put = f.map->put(f.thread, "other" + std::to_string(i), "o");
    if (!put) ++refused;
  }
  EXPECT_LT(refused, 10);  // of the same bin, until its segment is half full
  EXPECT_EQ(f.get("bystander"), "1");
  EXPECT_EQ(f.get(keys[0]), "y");
  EXPECT_EQ(f.get(keys[stored]), "z");
  EXPECT_EQ(f.faults(), "");
}

TEST(ChosenKeys, KeysMadeForOneBinAtAllDepthsAreRefusedInAFullSegmentToo) {
  HashFixture f({.partitions = 1, .seed = HashSeed{3, 4}});
  for (int i = 0; i < 1000; ++i) f.put("other" + std::to_string(i), "o");
  const auto keys = keys_of_one_bin(*f.map, 60, 99, 4);
  bool refused = false;
  for (const std::string& key : keys) {
    const auto put = f.map->put(f.thread, key, "x");
    refused = refused || !put;
  }
  EXPECT_TRUE(refused);
  EXPECT_EQ(f.faults(), "");
}

/// A hash of any partition, bin and tag with the first 12 bits of the directory, and so many of
/// those behind them that are 0.
std::uint64_t hash_of_prefix(base::Random& random, std::uint64_t prefix, std::uint32_t zeros) {
  const std::uint64_t far = ((std::uint64_t{1} << zeros) - 1) << (14 - zeros);
  return (random() & ~(std::uint64_t{0xFFF} << 38) & ~far) | prefix << 38;
}

TEST(ChosenKeys, KeysThatWereMadeForAHashHaveIt) {
  base::Random random(base::seed_from_environment(1));
  const HashSeed seed{random(), random()};
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t bits = random();
    ASSERT_EQ(hash_key(key_of_hash(seed, bits), seed), bits);
  }
}

// Their directory would double with each segment.
TEST(ChosenKeys, KeysMadeForOnePrefixGetNoDeepDirectory) {
  base::Random random(base::seed_from_environment(2));
  constexpr HashSeed kSeed{3, 4};
  HashFixture f({.partitions = 1, .seed = kSeed});
  int stored = 0;
  int refused = 0;
  for (int i = 0; i < 10'000; ++i) {
    const auto put = f.map->put(f.thread, key_of_hash(kSeed, hash_of_prefix(random, 0, 14)), "x");
    if (!put) {
      ASSERT_EQ(put.error().code, Code::exhausted);
    }
    ++(put ? stored : refused);
  }
  EXPECT_GT(stored, 1000);
  EXPECT_GT(refused, 1000);
  EXPECT_EQ(f.map->partitions()[0].directory().depth(), 8u);
  EXPECT_LE(f.map->all_numbers().segments, 9u);
  EXPECT_EQ(f.faults(), "");
  int others = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::string key = "other" + std::to_string(i);
    const bool put = f.map->put(f.thread, key, "o").has_value();
    // Those alone that lead to the segment of the made ones.
    if (!put) {
      EXPECT_EQ(f.map->hash(key).prefix(8), 0u);
      ++others;
    }
  }
  EXPECT_LT(others, 100'000 / 128);
  EXPECT_EQ(f.faults(), "");
}

// 4096 entries were all that there were once, and all keys of a full one were refused.
TEST(ChosenKeys, GrowsBeyondTwelveBitsOfItsDirectory) {
  base::Random random(base::seed_from_environment(3));
  constexpr HashSeed kSeed{3, 4};
  constexpr std::uint64_t kKeys = 1'200'000;  // with which a directory may have 8192 entries
  HashFixture f({.partitions = 1, .seed = kSeed}, std::uint64_t{256} << 20);
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(f.map->put(f.thread, "key" + std::to_string(i), "v")) << i;
  }
  ASSERT_GE(f.map->all_numbers().segments, 1024u);
  std::vector<std::string> keys;
  for (int i = 0; i < 1600; ++i) {
    keys.push_back(key_of_hash(kSeed, hash_of_prefix(random, 0x5A5, 0)));
    ASSERT_TRUE(f.map->put(f.thread, keys.back(), std::to_string(i))) << i;
  }
  EXPECT_EQ(f.map->partitions()[0].directory().depth(), 13u);
  for (std::size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(f.get(keys[i]), std::to_string(i));
  for (std::uint64_t i = 0; i < kKeys; i += 7) ASSERT_EQ(f.get("key" + std::to_string(i)), "v");
  std::uint64_t walked = 0;
  HashWalk walk(*f.map);
  const auto take = [&](const WalkedItem&) { return ++walked != 0; };
  while (!walk.at_end()) static_cast<void>(walk.step(f.thread, take));
  EXPECT_EQ(walked, kKeys + keys.size());
  EXPECT_EQ(f.faults(), "");
}

}  // namespace
}  // namespace espalier::hash

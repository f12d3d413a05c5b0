// SPDX-License-Identifier: Apache-2.0
// Golden bytes of a shard map, routing by it, and what is refused as one.
#include "kinds/map/format/shard.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/random.hpp"

namespace espalier::wire {
namespace {

constexpr std::uint32_t kKeyMax = 460;

ShardMap three() {
  ShardMap map;
  map.uid = 0x0807060504030201;
  map.own = 1;
  map.shards = {{"", "unix:a"}, {"k", "unix:b"}, {"ka", "shm:c"}};
  return map;
}

ShardFault fault_in(const std::string& bytes) {
  const auto read = read_shard_map(bytes, kKeyMax);
  return read ? ShardFault::invalid : read.error();
}

TEST(ShardFormat, BytesLieWhereTheDocumentDrawsThem) {
  const std::string golden(
      "\x01\x02\x03\x04\x05\x06\x07\x08"
      "\x01\0\0\0"
      "\x01\0\x03\0"
      "\0\0\x06\0unix:a"
      "\x01\0\x06\0kunix:b"
      "\x02\0\x05\0kashm:c",
      16 + 10 + 11 + 11);
  EXPECT_EQ(bytes_of(three()), golden);
  const auto read = read_shard_map(golden, kKeyMax);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->same(three()));
  EXPECT_EQ(read->own, 1u);
}

TEST(ShardFormat, KeysHaveOneShardEach) {
  const ShardMap map = three();
  EXPECT_EQ(map.shard_of(""), 0u);
  EXPECT_EQ(map.shard_of("j\xFF"), 0u);
  EXPECT_EQ(map.shard_of("k"), 1u);
  EXPECT_EQ(map.shard_of(std::string_view("k\0", 2)), 1u);
  EXPECT_EQ(map.shard_of("k`\xFF"), 1u);
  EXPECT_EQ(map.shard_of("ka"), 2u);
  EXPECT_EQ(map.shard_of("\xFF"), 2u);
  base::Random random(base::seed_from_environment(1));
  for (int i = 0; i < 2'000; ++i) {
    std::string key(random.below(4), '\0');
    for (char& c : key) c = random.below(2) == 0 ? 'k' : static_cast<char>('`' + random.below(3));
    for (std::size_t shard = 0; shard < map.size(); ++shard) {
      EXPECT_EQ(map.bounds(shard).has(key), map.shard_of(key) == shard) << key;
    }
  }
}

TEST(ShardFormat, RangesEndBelowTheirHighKey) {
  const ShardMap map = three();
  EXPECT_EQ(map.last_below(""), 2u);
  EXPECT_EQ(map.last_below("a"), 0u);
  EXPECT_EQ(map.last_below("k"), 0u);
  EXPECT_EQ(map.last_below("ka"), 1u);
  EXPECT_EQ(map.last_below("kaa"), 2u);
  EXPECT_TRUE(map.bounds(0).has_range("", "k"));
  EXPECT_FALSE(map.bounds(0).has_range("", "k0"));
  EXPECT_FALSE(map.bounds(0).has_range("", ""));
  EXPECT_TRUE(map.bounds(1).has_range("k", "ka"));
  EXPECT_FALSE(map.bounds(1).has_range("j", "ka"));
  EXPECT_FALSE(map.bounds(1).has_range("", "ka"));
  EXPECT_TRUE(map.bounds(2).has_range("ka", ""));
}

TEST(ShardFormat, RefusesEachFieldThatCannotBe) {
  const std::string good = bytes_of(three());
  ASSERT_EQ(fault_in(good), ShardFault::invalid);
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_EQ(fault_in(good.substr(0, bytes)), ShardFault::too_short) << bytes;
  }
  EXPECT_EQ(fault_in(good + '\0'), ShardFault::too_long);
  const auto with = [&](std::size_t at, char byte) {
    std::string bytes = good;
    bytes[at] = byte;
    return fault_in(bytes);
  };
  EXPECT_EQ(with(8, 2), ShardFault::unknown_version);
  EXPECT_EQ(with(11, 1), ShardFault::unknown_version);
  EXPECT_EQ(with(12, 3), ShardFault::bad_own);
  EXPECT_EQ(with(14, 0), ShardFault::bad_count);
  EXPECT_EQ(with(14, 65), ShardFault::bad_count);
  EXPECT_EQ(with(14, 2), ShardFault::too_long);
  const auto faults = [](const std::function<void(ShardMap&)>& change, ShardFault fault) {
    ShardMap map = three();
    change(map);
    EXPECT_EQ(fault_of(map, kKeyMax), fault);
    EXPECT_EQ(fault_in(bytes_of(map)), fault);
    EXPECT_FALSE(text_of(fault).empty());
  };
  faults([](ShardMap& map) { map.shards[0].low = "a"; }, ShardFault::first_border);
  faults([](ShardMap& map) { map.shards[1].low = ""; }, ShardFault::border_order);
  faults([](ShardMap& map) { map.shards[2].low = "k"; }, ShardFault::border_order);
  faults([](ShardMap& map) { map.shards[2].low = "j"; }, ShardFault::border_order);
  faults([](ShardMap& map) { map.shards[2].low = std::string(461, 'z'); },
         ShardFault::border_too_long);
  faults([](ShardMap& map) { map.shards[1].address = ""; }, ShardFault::bad_address);
  faults([](ShardMap& map) { map.shards[1].address = std::string(256, 'a'); },
         ShardFault::bad_address);
  faults([](ShardMap& map) { map.shards[1].address = "unix:\n"; }, ShardFault::bad_address);
  faults([](ShardMap& map) { map.shards[1].address = "unix:\x7F"; }, ShardFault::bad_address);
  faults([](ShardMap& map) { map.shards[2].address = "unix:a"; }, ShardFault::address_twice);
  faults([](ShardMap& map) { map.shards.clear(); }, ShardFault::bad_count);
}

TEST(ShardFormat, SixtyFourShardsAreTheMost) {
  ShardMap map;
  for (char i = 0; i < 64; ++i) {
    map.shards.push_back({i == 0 ? std::string() : std::string(1, i),
                          "unix:" + std::to_string(static_cast<int>(i))});
  }
  EXPECT_EQ(fault_in(bytes_of(map)), ShardFault::invalid);
  map.shards.push_back({"z", "unix:z"});
  EXPECT_EQ(fault_in(bytes_of(map)), ShardFault::bad_count);
}

// Arbitrary bytes parse as a map in which every key has exactly one shard, or are rejected.
TEST(ShardFormat, BytesOfAStrangerAreAGoodMapOrNone) {
  const std::uint64_t seed = base::seed_from_environment(7);
  SCOPED_TRACE("seed " + std::to_string(seed));
  base::Random random(seed);
  std::size_t believed = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = bytes_of(three());
    for (std::uint64_t n = random.between(1, 3); n != 0; --n) {
      bytes[random.below(bytes.size())] =
          static_cast<char>(random.below(random.below(2) == 0 ? 4 : 256));
    }
    if (random.below(4) == 0) bytes.resize(random.below(bytes.size() + 8));
    const auto read = read_shard_map(bytes, kKeyMax);
    if (!read) continue;
    ++believed;
    EXPECT_EQ(fault_of(*read, kKeyMax), ShardFault::invalid);
    EXPECT_EQ(bytes_of(*read), bytes);
    EXPECT_LT(read->shard_of("k"), read->size());
  }
  EXPECT_GT(believed, 100u);
}

}  // namespace
}  // namespace espalier::wire

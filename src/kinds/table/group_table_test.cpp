// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/group_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "kinds/table/testing/memory_rows.hpp"

namespace espalier::table {
namespace {

TEST(KeyLayout, TakesTheFirstColumnsAndTheirNullBits) {
  const Schema schema = *Schema::parse("a i8, b i64, c text(5), d i64, e i64");
  const KeyLayout layout = KeyLayout::of(schema, 3);
  EXPECT_EQ(layout.key_bytes, 16u + 7u);
  EXPECT_EQ(layout.null_bytes, 1u);
  EXPECT_EQ(layout.last_mask, 7u);
  std::vector<std::byte> one(schema.row_bytes());
  std::vector<std::byte> other = one;
  const std::size_t nulls = schema.null_offset();
  other[schema.column(3).offset] = std::byte{1};
  other[nulls] = std::byte{0x18};  // d and e are no keys
  EXPECT_TRUE(layout.equal(one.data(), other.data()));
  EXPECT_EQ(layout.hash(one.data(), KeyHash(5)), layout.hash(other.data(), KeyHash(5)));
  other[nulls] = std::byte{4};
  EXPECT_FALSE(layout.equal(one.data(), other.data()));
  EXPECT_NE(layout.hash(one.data(), KeyHash(5)), layout.hash(other.data(), KeyHash(5)));
  other[nulls] = std::byte{0};
  other[22] = std::byte{1};
  EXPECT_FALSE(layout.equal(one.data(), other.data()));
  EXPECT_NE(layout.hash(one.data(), KeyHash(5)), layout.hash(one.data(), KeyHash(6)));
}

TEST(GroupTable, AgreesWithAMap) {
  base::Random random(base::seed_from_environment(1));
  const Schema schema = *Schema::parse("k text(20) not null, n i64 not null");
  GroupTable groups(KeyLayout::of(schema, 1), GroupTable::kNoLimit, random());
  std::map<std::string, std::size_t> model;
  for (int i = 0; i < 50000; ++i) {
    const std::string key = std::to_string(random.below(9000));
    MemoryRows rows(schema);
    rows.append({Value::of_text(key), Value::of(i)});
    const auto [at, is_new] = model.emplace(key, model.size());
    const GroupTable::Found found = groups.find_or_insert(rows.row(0));
    ASSERT_EQ(found.is_new, is_new);
    ASSERT_EQ(found.row, groups.row(at->second));
  }
  EXPECT_EQ(groups.size(), model.size());
  groups.clear();
  EXPECT_EQ(groups.size(), 0u);
}

/// Looks for random keys in batches, and holds the rows against a map's.
void expect_batches_agree(const char* schema_text, std::size_t keys, std::uint64_t values,
                          std::size_t bytes_max, base::Random& random) {
  // Near each other at first and then not, or the other way round.
  const bool near_first = random.chance(0.5);
  const Schema schema = *Schema::parse(schema_text);
  const KeyLayout layout = KeyLayout::of(schema, keys);
  GroupTable groups(layout, bytes_max, random());
  const std::vector<std::byte> blank(schema.row_bytes(), std::byte{7});
  const bool begins = layout.words() != 0;
  const std::uint32_t stride = begins ? 8 * layout.words() : schema.row_bytes();
  for (int life = 0; life < 2; ++life) {
    std::map<std::string, std::size_t> model;
    bool full = false;
    for (std::uint64_t i = 0; i < 3 * values && !full; i += GroupTable::kBatchKeys) {
      std::vector<std::byte> batch(std::size_t{stride} * GroupTable::kBatchKeys);
      for (std::size_t k = 0; k < GroupTable::kBatchKeys; ++k) {
        std::uint64_t value = random.below(values);
        if ((life == 0) != near_first) value *= 0x9e37'79b9'7f4a'7c15;
        std::memcpy(batch.data() + k * stride, &value, std::min(layout.key_bytes, 8u));
      }
      std::byte* rows[GroupTable::kBatchKeys] = {};
      const std::uint32_t found = groups.find_or_insert(
          {batch.data(), stride, GroupTable::kBatchKeys, begins ? blank.data() : nullptr, true},
          rows);
      for (std::uint32_t k = 0; k < found; ++k) {
        const std::byte* const key = batch.data() + k * stride;
        const std::string text(reinterpret_cast<const char*>(key), layout.key_bytes);
        const auto [at, is_new] = model.emplace(text, model.size());
        ASSERT_EQ(rows[k], groups.row(at->second)) << schema_text;
        ASSERT_EQ(std::memcmp(rows[k], key, layout.key_bytes), 0) << schema_text;
      }
      full = found < GroupTable::kBatchKeys;
      ASSERT_LE(groups.memory_bytes(), bytes_max);
      ASSERT_TRUE(!full || rows[found] == nullptr);
    }
    EXPECT_EQ(groups.size(), model.size());
    EXPECT_EQ(full, bytes_max != GroupTable::kNoLimit);
    if (begins && layout.key_bytes < schema.row_bytes()) {
      EXPECT_EQ(groups.row(groups.size() - 1)[schema.row_bytes() - 1], std::byte{7});
    }
    groups.clear();
  }
}

/// Keys of 1, 4, 8, 12, 16 bytes and more, and with null bits.
void expect_batches_of_all_keys_agree(std::uint64_t values, base::Random& random) {
  constexpr std::size_t kAll = GroupTable::kNoLimit;
  expect_batches_agree("k i64 not null, n i64 not null", 1, values, kAll, random);
  expect_batches_agree("k i32 not null, n i64 not null", 1, values, kAll, random);
  expect_batches_agree("k i64 not null, l i32 not null, n i64 not null", 2, values, kAll, random);
  expect_batches_agree("k i64 not null, l i64 not null", 2, values, kAll, random);
  expect_batches_agree("k i64, n i64 not null", 1, values, kAll, random);
  expect_batches_agree("k i64 not null, t text(30) not null", 2, values, kAll, random);
}

// In the cache and beyond it, with one segment and with many.
TEST(GroupTable, BatchesAgreeWithAMap) {
  base::Random random(base::seed_from_environment(2));
  constexpr std::size_t kAll = GroupTable::kNoLimit;
  for (const std::uint64_t values : {100, 5001}) expect_batches_of_all_keys_agree(values, random);
  expect_batches_agree("k char(1) not null, n i64 not null", 1, 200, kAll, random);
  constexpr std::size_t kLittle = std::size_t{4} << 20;
  expect_batches_agree("k i64 not null, n i64 not null", 1, 1'000'000, kLittle, random);
  expect_batches_agree("k i64 not null", 1, 100'000, GroupTable::kBytesMin, random);
}

TEST(GroupTable, BatchesOfManyKeysAgreeWithAMap) {
  base::Random random(base::seed_from_environment(2));
  for (const std::uint64_t values : {5000, 60000, 60001}) {
    expect_batches_of_all_keys_agree(values, random);
  }
}

TEST(GroupTable, StaysWithinItsMemoryAndFindsWhatItHas) {
  for (const char* text : {"k i64 not null", "k i64 not null, t text(1000), u text(1024)"}) {
    const Schema schema = *Schema::parse(text);
    GroupTable groups(KeyLayout::of(schema, schema.columns().size()), GroupTable::kBytesMin, 3);
    std::vector<std::byte> row(schema.row_bytes());
    const auto number = [&](std::uint64_t n) {
      std::memcpy(row.data(), &n, sizeof n);
      return row.data();
    };
    std::uint64_t held = 0;
    while (groups.find_or_insert(number(held)).row != nullptr) {
      ++held;
      ASSERT_LE(groups.memory_bytes(), GroupTable::kBytesMin);
    }
    EXPECT_GT(held * schema.row_bytes(), GroupTable::kBytesMin / 4) << text;
    for (std::uint64_t n = 0; n < held; ++n) {
      const GroupTable::Found found = groups.find_or_insert(number(n));
      ASSERT_TRUE(found.row == groups.row(n) && !found.is_new);
    }
    groups.clear();
    EXPECT_TRUE(groups.find_or_insert(number(held)).is_new);
    EXPECT_LE(groups.memory_bytes(), GroupTable::kBytesMin);
  }
}

/// Looks for a number of random keys, a batch at a time, each of which may let the table grow so
/// often. Returns the most that it grew in one.
std::uint64_t most_growths(std::uint32_t allowed, std::uint32_t keys, std::uint64_t& pauses) {
  const Schema schema = *Schema::parse("k i64 not null, n i64 not null");
  const KeyLayout layout = KeyLayout::of(schema, 1);
  GroupTable groups(layout, GroupTable::kNoLimit, 5);
  const std::vector<std::byte> blank(schema.row_bytes());
  std::uint64_t most = 0;
  for (std::uint64_t at = 0; at < keys;) {
    std::uint64_t batch[GroupTable::kBatchKeys];
    for (std::uint64_t i = 0; i < std::size(batch); ++i) {
      batch[i] = base::mix64(1 + at + i);  // all are different
    }
    groups.allow_growths(allowed);
    const std::uint64_t before = groups.growths();
    std::byte* rows[GroupTable::kBatchKeys] = {};
    const std::uint32_t found = groups.find_or_insert(
        {reinterpret_cast<const std::byte*>(batch), 8, GroupTable::kBatchKeys, blank.data(), true},
        rows);
    most = std::max(most, groups.growths() - before);
    EXPECT_EQ(groups.is_paused(), found < GroupTable::kBatchKeys);
    pauses += groups.is_paused() ? 1 : 0;
    for (std::uint32_t i = 0; i < found; ++i) EXPECT_EQ(rows[i], groups.row(at + i));
    at += found;
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GE(groups.size(), keys);
  return most;
}

// What makes a step long is counted, not timed: segments that are split or doubled, and pages.
TEST(GroupTable, GrowsInABatchNoOftenerThanItMay) {
  constexpr std::uint32_t kKeys = 1'000'000;
  std::uint64_t pauses = 0;
  EXPECT_GT(most_growths(1000, kKeys, pauses), 3u);  // full segments come in bursts
  EXPECT_EQ(pauses, 0u);
  EXPECT_EQ(most_growths(1, kKeys, pauses), 1u);
  EXPECT_GT(pauses, 10u);
}

/// Slots by which rows are displaced, for each key, where all of these are looked for.
double displacement(const std::vector<std::uint64_t>& keys, std::uint64_t seed) {
  const Schema schema = *Schema::parse("k i64 not null");
  GroupTable groups(KeyLayout::of(schema, 1), GroupTable::kNoLimit, seed);
  for (const std::uint64_t key : keys) {
    groups.find_or_insert(reinterpret_cast<const std::byte*>(&key));
  }
  EXPECT_EQ(groups.size(), keys.size());
  return static_cast<double>(groups.displacement()) / static_cast<double>(keys.size());
}

TEST(GroupTable, KeysAtEqualDistancesAreFoundAsSoonAsOthers) {
  base::Random random(base::seed_from_environment(7));
  const int seeds = std::getenv("ESPALIER_FEW_SEEDS") != nullptr ? 20 : 300;
  for (int i = 0; i < seeds; ++i) {
    const std::uint64_t seed = random();
    for (const unsigned shift : {0u, 12u, 20u, 28u, 36u, 44u, 48u}) {
      std::vector<std::uint64_t> keys(4096);
      for (std::uint64_t k = 0; k < keys.size(); ++k) keys[k] = k << shift;
      ASSERT_LT(displacement(keys, seed), 2.0) << "seed " << seed << ", shift " << shift;
    }
  }
}

// A client that knew the seed could make searches long, but neither wrong nor endless.
TEST(GroupTable, KeysWhoseTagsAreAlikeAreAllFound) {
  constexpr std::uint64_t kSeed = 11;
  const KeyHash hash(kSeed);
  const Schema schema = *Schema::parse("k i64 not null");
  // Those of one slot, and those of one segment however often it is split.
  for (const auto& [mask, count] : {std::pair{0x1FFFu, 1500}, std::pair{0xFFF0'0000u, 9000}}) {
    std::vector<std::uint64_t> keys;
    for (std::uint64_t key = 0; std::ssize(keys) < count; ++key) {
      if ((KeyHash::tag_of(hash.of(key * 7919)) & mask) == 0) keys.push_back(key * 7919);
    }
    GroupTable groups(KeyLayout::of(schema, 1), GroupTable::kNoLimit, kSeed);
    for (int round = 0; round < 2; ++round) {
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const auto found = groups.find_or_insert(reinterpret_cast<const std::byte*>(&keys[i]));
        ASSERT_EQ(found.row, groups.row(i));
        ASSERT_EQ(found.is_new, round == 0);
      }
    }
    EXPECT_EQ(groups.size(), keys.size());
  }
  // Where there is little memory, there is no room at some time.
  GroupTable little(KeyLayout::of(schema, 1), GroupTable::kBytesMin, kSeed);
  std::uint64_t held = 0;
  for (std::uint64_t key = 0; held < 100'000; ++key) {
    if ((KeyHash::tag_of(hash.of(key)) & 0xFF00'0000) != 0) continue;
    if (little.find_or_insert(reinterpret_cast<const std::byte*>(&key)).row == nullptr) break;
    ++held;
  }
  EXPECT_EQ(little.size(), held);
  EXPECT_LE(little.memory_bytes(), GroupTable::kBytesMin);
}

}  // namespace
}  // namespace espalier::table

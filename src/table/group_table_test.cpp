// SPDX-License-Identifier: Apache-2.0
#include "table/group_table.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "table/testing/memory_rows.hpp"

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
  EXPECT_EQ(layout.hash(one.data(), 5), layout.hash(other.data(), 5));
  other[nulls] = std::byte{4};
  EXPECT_FALSE(layout.equal(one.data(), other.data()));
  EXPECT_NE(layout.hash(one.data(), 5), layout.hash(other.data(), 5));
  other[nulls] = std::byte{0};
  other[22] = std::byte{1};
  EXPECT_FALSE(layout.equal(one.data(), other.data()));
  EXPECT_NE(layout.hash(one.data(), 5), layout.hash(one.data(), 6));
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

}  // namespace
}  // namespace espalier::table

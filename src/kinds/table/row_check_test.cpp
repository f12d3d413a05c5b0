// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/row_check.hpp"

#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "kinds/table/row_values.hpp"
#include "kinds/table/testing/random_table.hpp"

namespace espalier::table {
namespace {

template <class T>
void put(std::vector<std::byte>& row, std::size_t at, T value) {
  std::memcpy(row.data() + at, &value, sizeof value);
}

TEST(RowCheck, CanonicalRowsStayAsTheyAre) {
  base::Random random(base::seed_from_environment(3));
  for (int i = 0; i < 1000; ++i) {
    const Schema schema = random_schema(random);
    const std::vector<std::byte> row = random_rows(random, schema, 1);
    std::vector<std::byte> checked = row;
    ASSERT_FALSE(RowCheck(schema).apply(checked.data()));
    ASSERT_EQ(checked, row) << schema.to_text();
  }
}

// Any bytes: either a fault that is one, or a row that is canonical and has the same values.
TEST(RowCheck, AnyRowBecomesCanonicalOrIsRefused) {
  base::Random random(base::seed_from_environment(4));
  int refused = 0;
  int taken = 0;
  for (int i = 0; i < 4000; ++i) {
    const Schema schema = random_schema(random, 4);
    std::vector<std::byte> row = random_rows(random, schema, 1);
    const std::vector<std::byte> noise = random_rows(random, schema_of("a char(32)"), 1);
    for (std::byte& b : row) {
      if (random.chance(0.1)) b = noise[random.below(noise.size())];
    }
    const std::vector<std::byte> before = row;
    const RowCheck check(schema);
    if (const auto found = check.apply(row.data())) {
      ++refused;
      const Column& column = schema.column(found->column);
      ASSERT_FALSE(is_null(column, before.data()));
      if (column.type.kind == ColumnType::text) {
        ASSERT_EQ(found->fault, RowFault::text_length);
        ASSERT_GT(base::load_le<std::uint16_t>(before.data() + column.offset), column.type.length);
      } else {
        const std::int64_t value = load_integer(column, before.data());
        const IntegerRange range = range_of(column.type);
        ASSERT_TRUE(value < range.low || value > range.high);
      }
      continue;
    }
    ++taken;
    std::vector<std::byte> again(row.size());
    for (const Column& column : schema.columns()) {
      ASSERT_EQ(is_null(column, row.data()), is_null(column, before.data()));
      bool stored = false;
      if (is_null(column, row.data())) {
        stored = store_null(column, again.data());
      } else if (is_integral(column.type.kind)) {
        ASSERT_EQ(load_integer(column, row.data()), load_integer(column, before.data()));
        stored = store_integer(column, again.data(), load_integer(column, before.data()));
      } else if (is_floating(column.type.kind)) {
        std::memcpy(again.data() + column.offset, before.data() + column.offset, column.bytes);
        stored = true;
      } else {
        ASSERT_EQ(load_text(column, row.data()), load_text(column, before.data()));
        stored = store_text(column, again.data(), load_text(column, before.data()));
      }
      ASSERT_TRUE(stored);
    }
    ASSERT_EQ(row, again) << schema.to_text();
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(taken, 1000);
}

TEST(RowCheck, NamesTheColumnAndTheFault) {
  const Schema schema = schema_of(
      "a i8 not null, price decimal(3,1) not null, d date not null, ts timestamp not null, "
      "s text(2) not null");
  const RowCheck check(schema);
  const std::vector<std::byte> good(schema.row_bytes());
  const auto found = [&](std::uint32_t column, auto value) {
    std::vector<std::byte> row = good;
    put(row, schema.column(column).offset, value);
    const auto fault = check.apply(row.data());
    return fault ? describe({7, fault->column, fault->fault}, schema) : "good";
  };
  EXPECT_EQ(found(1, std::int64_t{-999}), "good");
  EXPECT_EQ(found(1, std::int64_t{1000}), "row 7, column price: more than 3 digits");
  EXPECT_EQ(found(1, std::int64_t{-1000}), "row 7, column price: more than 3 digits");
  EXPECT_EQ(found(2, wire::kDateMin), "good");
  EXPECT_EQ(found(2, wire::kDateMin - 1), "row 7, column d: outside the years 1 to 9999");
  EXPECT_EQ(found(3, wire::kTimestampMax), "good");
  EXPECT_EQ(found(3, wire::kTimestampMax + 1), "row 7, column ts: outside the years 1 to 9999");
  EXPECT_EQ(found(4, std::uint16_t{2}), "good");
  EXPECT_EQ(found(4, std::uint16_t{3}), "row 7, column s: a text of more than 2 bytes");
}

TEST(RowCheck, ANullHidesWhatItsValueWas) {
  const Schema schema = schema_of("s text(2), d decimal(1)");
  std::vector<std::byte> row(schema.row_bytes(), std::byte{0xFF});
  ASSERT_FALSE(RowCheck(schema).apply(row.data()));
  std::vector<std::byte> nulls(schema.row_bytes());
  ASSERT_TRUE(store_null(schema.column(0), nulls.data()));
  ASSERT_TRUE(store_null(schema.column(1), nulls.data()));
  EXPECT_EQ(row, nulls);
}

}  // namespace
}  // namespace espalier::table

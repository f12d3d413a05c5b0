// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/row_values.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "crypto/hex.hpp"
#include "kinds/table/testing/random_table.hpp"

namespace espalier::table {
namespace {

TEST(RowValues, LieWhereTheFormatDrawsThem) {
  const Schema schema = schema_of("a i64 not null, b decimal(12,2), c text(20)");
  std::vector<std::byte> row(schema.row_bytes());
  EXPECT_TRUE(store_integer(schema.column(0), row.data(), 0x0102));
  EXPECT_TRUE(store_null(schema.column(1), row.data()));
  EXPECT_TRUE(store_text(schema.column(2), row.data(), "xyz"));
  EXPECT_EQ(crypto::to_hex(row),
            "0201000000000000"
            "0000000000000000"
            "0300"
            "78797a" +
                std::string(34, '0') + "0100");
  EXPECT_TRUE(store_integer(schema.column(1), row.data(), -1));
  EXPECT_EQ(crypto::to_hex(row).substr(16, 16), "ffffffffffffffff");
  EXPECT_EQ(crypto::to_hex(row).substr(76), "0000");
}

TEST(RowValues, IntegersKeepToTheirRanges) {
  const Schema schema = schema_of(
      "a i8, b i16, c i32, d i64, e decimal(3,1), f date, g timestamp, h bool, i decimal(18)");
  std::vector<std::byte> row(schema.row_bytes());
  for (const Column& column : schema.columns()) {
    const IntegerRange range = range_of(column.type);
    for (const std::int64_t value : {range.low, range.high, std::int64_t{0}, std::int64_t{1}}) {
      EXPECT_TRUE(store_integer(column, row.data(), value)) << column.name;
      EXPECT_EQ(load_integer(column, row.data()), value) << column.name;
      EXPECT_FALSE(is_null(column, row.data()));
    }
    if (column.type.kind == ColumnType::i64) continue;
    EXPECT_TRUE(store_integer(column, row.data(), 1));
    EXPECT_FALSE(store_integer(column, row.data(), range.low - 1)) << column.name;
    EXPECT_FALSE(store_integer(column, row.data(), range.high + 1)) << column.name;
    EXPECT_EQ(load_integer(column, row.data()), 1) << column.name;
  }
  EXPECT_EQ(range_of(schema.column(4).type).high, 999);
  EXPECT_EQ(range_of(schema.column(8).type).low, -999'999'999'999'999'999);
}

TEST(RowValues, FloatsTakeWhatFits) {
  const Schema schema = schema_of("a float, b double");
  std::vector<std::byte> row(schema.row_bytes());
  EXPECT_TRUE(store_floating(schema.column(0), row.data(), 0.5));
  EXPECT_FALSE(store_floating(schema.column(0), row.data(), 1e39));
  EXPECT_EQ(load_floating(schema.column(0), row.data()), 0.5);
  EXPECT_TRUE(store_floating(schema.column(0), row.data(), -HUGE_VAL));
  EXPECT_EQ(load_floating(schema.column(0), row.data()), -HUGE_VAL);
  EXPECT_TRUE(store_floating(schema.column(1), row.data(), 1e308));
  EXPECT_EQ(load_floating(schema.column(1), row.data()), 1e308);
  EXPECT_TRUE(store_floating(schema.column(1), row.data(), std::nan("")));
  EXPECT_TRUE(std::isnan(load_floating(schema.column(1), row.data())));
}

TEST(RowValues, TextsAreAsLongAsTheyMayBe) {
  const Schema schema = schema_of("a text(3), b char(3)");
  std::vector<std::byte> row(schema.row_bytes());
  const Column& text = schema.column(0);
  const Column& fixed = schema.column(1);
  for (const std::string_view value : {"abc", "a", "", "a "}) {
    EXPECT_TRUE(store_text(text, row.data(), value));
    EXPECT_EQ(load_text(text, row.data()), value);
  }
  EXPECT_FALSE(store_text(text, row.data(), "abcd"));
  EXPECT_EQ(load_text(text, row.data()), "a ");
  EXPECT_TRUE(store_text(fixed, row.data(), "ab"));
  EXPECT_EQ(std::memcmp(row.data() + fixed.offset, "ab ", 3), 0);
  EXPECT_EQ(load_text(fixed, row.data()), "ab");
  EXPECT_TRUE(store_text(fixed, row.data(), "a      "));
  EXPECT_EQ(load_text(fixed, row.data()), "a");
  EXPECT_FALSE(store_text(fixed, row.data(), " bcd"));
  EXPECT_TRUE(store_text(fixed, row.data(), ""));
  EXPECT_EQ(load_text(fixed, row.data()), "");
}

TEST(RowValues, NullsAreForColumnsThatHaveThem) {
  const Schema schema = schema_of("a i8 not null, b i8, c text(3)");
  std::vector<std::byte> row(schema.row_bytes());
  EXPECT_FALSE(store_null(schema.column(0), row.data()));
  EXPECT_TRUE(store_integer(schema.column(1), row.data(), 7));
  EXPECT_TRUE(store_null(schema.column(1), row.data()));
  EXPECT_TRUE(is_null(schema.column(1), row.data()));
  EXPECT_EQ(load_integer(schema.column(1), row.data()), 0);
  EXPECT_FALSE(is_null(schema.column(2), row.data()));
  EXPECT_FALSE(is_null(schema.column(0), row.data()));
}

// Rule T1 of kinds/table/format/table.hpp. Under sanitizers a read outside the row would be seen.
TEST(RowValues, AnyBytesCanBeRead) {
  base::Random random(base::seed_from_environment(2));
  for (int i = 0; i < 2000; ++i) {
    const Schema schema = random_schema(random);
    std::vector<std::byte> row(schema.row_bytes());
    random.fill(row);
    if (i % 3 == 0) std::ranges::fill(row, std::byte{0xFF});
    for (const Column& column : schema.columns()) {
      if (is_textual(column.type.kind)) {
        const std::string_view text = load_text(column, row.data());
        ASSERT_LE(text.size(), column.type.length);
        ASSERT_GE(text.data(), reinterpret_cast<const char*>(row.data() + column.offset));
      } else if (column.type.kind == ColumnType::boolean) {
        ASSERT_EQ(load_integer(column, row.data()), row[column.offset] != std::byte{0} ? 1 : 0);
      } else if (is_integral(column.type.kind)) {
        (void)load_integer(column, row.data());
      } else {
        (void)load_floating(column, row.data());
      }
      if (!column.nullable) {
        ASSERT_FALSE(is_null(column, row.data()));
      }
    }
  }
}

}  // namespace
}  // namespace espalier::table

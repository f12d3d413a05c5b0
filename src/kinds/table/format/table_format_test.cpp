// SPDX-License-Identifier: Apache-2.0
// Golden bytes of tables (wire/format_test.cpp).
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "base/bytes.hpp"
#include "kinds/table/format/table.hpp"

namespace espalier::wire {
namespace {

using std::string_literals::operator""s;

using base::bytes_of;

TEST(TableFormat, ColumnTypes) {
  constexpr ColumnType kTypes[] = {
      ColumnType::invalid, ColumnType::i8,        ColumnType::i16,     ColumnType::i32,
      ColumnType::i64,     ColumnType::f32,       ColumnType::f64,     ColumnType::decimal,
      ColumnType::date,    ColumnType::timestamp, ColumnType::boolean, ColumnType::fixed_char,
      ColumnType::text};
  for (int i = 0; i < 13; ++i) EXPECT_EQ(static_cast<int>(kTypes[i]), i);
}

TEST(TableFormat, Schema) {
  EXPECT_EQ(bytes_of(SchemaHeader{1, 2, 0}), "\1\0\2\0\0\0\0\0"s);
  ColumnDescriptor column{ColumnType::decimal, 1, 12, 2, 0, 5, {}};
  std::memcpy(column.name, "price", 5);
  EXPECT_EQ(bytes_of(column), "\7\1\x0C\2\0\0\5\0price"s + std::string(59, '\0'));
  ColumnDescriptor text{ColumnType::text, 0, 0, 0, 1024, 1, {'t'}};
  EXPECT_EQ(bytes_of(text), "\x0C\0\0\0\0\4\1\0t"s + std::string(63, '\0'));
  EXPECT_EQ(kSchemaBytesMax, 18'440u);
}

TEST(TableFormat, TableHeader) {
  TableHeader header{};
  header.table_id = 0x8000'0001;
  header.generation = 2;
  header.created = kNoNode;
  header.superseded = kLive;
  header.magic = kTableMagic;
  header.format = kTableFormat;
  header.row_bytes = 64;
  header.schema_bytes = 80;
  header.rows = 0x0102;
  header.pages = 3;
  header.cipher = static_cast<std::uint32_t>(TableCipher::aes_128_ctr);
  std::memset(header.salt, 5, sizeof header.salt);
  const std::string bytes(bytes_of(header));
  EXPECT_EQ(bytes.substr(0, 8), "\1\0\0\x80\2\0\0\0"s);
  EXPECT_EQ(bytes.substr(8, 16), std::string(16, '\xFF'));
  EXPECT_EQ(bytes.substr(24, 8), "ELIR TBL");
  EXPECT_EQ(bytes.substr(32, 16), "\1\0\0\0\x40\0\0\0\x50\0\0\0\0\0\0\0"s);
  EXPECT_EQ(bytes.substr(48, 16), std::string(16, '\0'));
  EXPECT_EQ(bytes.substr(64, 16), "\2\1\0\0\0\0\0\0\3\0\0\0\0\0\0\0"s);
  EXPECT_EQ(bytes.substr(80, 48), std::string(48, '\0'));
  EXPECT_EQ(bytes.substr(128), "\1\0\0\0\0\0\0\0"s + std::string(32, '\5') + std::string(24, '\0'));
  EXPECT_EQ(kTableSchemaOffset, 192u);
  EXPECT_EQ(kTableDirectoryOffset, 32'768u);
  EXPECT_EQ(kTableDirectoryEntries, 4096u);
}

TEST(TableFormat, RowPages) {
  EXPECT_EQ(bytes_of(RowPageEntry{0x0102, 0x0304}), "\2\1\0\0\0\0\0\0\4\3\0\0\0\0\0\0"s);
  EXPECT_EQ(kRowPageListOffset, 32u);
  EXPECT_EQ(kRowPageListEntries, 2046u);
  const RowPageHeader page{0x8000'0001, 2, kNoNode, kLive, 3, 4, 64, 0, 6, 0};
  EXPECT_EQ(bytes_of(page), "\1\0\0\x80\2\0\0\0"s + std::string(16, '\xFF') +
                                "\3\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\x40\0\0\0"s + "\0\0\0\0\6"s +
                                std::string(15, '\0'));
  EXPECT_EQ(kRowPageBytes, 2'097'152u);
}

TEST(TableFormat, LimitsOfDates) {
  EXPECT_EQ(kTimestampMin, -62'135'596'800'000'000);
  EXPECT_EQ(kTimestampMax, 253'402'300'799'999'999);
}

}  // namespace
}  // namespace espalier::wire

// SPDX-License-Identifier: Apache-2.0
#include "lineitem/lineitem.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace espalier::lineitem {
namespace {

constexpr double kScale = 0.01;
constexpr std::int32_t kFirstDate = 8035;    // 1992-01-01
constexpr std::int32_t kLastDate = 10'591;   // 1998-12-31
constexpr std::int32_t kCurrentDate = 9298;  // 1995-06-17
constexpr std::int32_t kSuppliers = 100;     // at this scale
constexpr std::int32_t kParts = 2000;        // the same

TEST(Lineitem, HasTheRangesOfTheSpecification) {
  Generator generator(kScale, 1);
  std::size_t rows = 0;
  std::size_t comments_of_43 = 0;
  std::set<std::string_view> instructions;
  std::set<std::string_view> modes;
  while (const Row* const row = generator.next()) {
    ++rows;
    ASSERT_TRUE(row->orderkey >= 1 && (row->orderkey - 1) % 32 < 8) << row->orderkey;
    ASSERT_TRUE(row->partkey >= 1 && row->partkey <= kParts) << row->partkey;
    ASSERT_TRUE(row->suppkey >= 1 && row->suppkey <= kSuppliers) << row->suppkey;
    ASSERT_TRUE(row->linenumber >= 1 && row->linenumber <= 7);
    ASSERT_TRUE(row->quantity >= 1 && row->quantity <= 50);
    ASSERT_TRUE(row->discount >= 0 && row->discount <= 10);
    ASSERT_TRUE(row->tax >= 0 && row->tax <= 8);
    ASSERT_TRUE(row->shipdate > kFirstDate && row->receiptdate <= kLastDate);
    ASSERT_TRUE(row->comment.size() >= 10 && row->comment.size() <= 43);
    ASSERT_NE(row->comment.back(), ' ');
    comments_of_43 += row->comment.size() == 43 ? 1 : 0;
    instructions.insert(row->shipinstruct);
    modes.insert(row->shipmode);
  }
  EXPECT_GT(rows, 58'000u);
  EXPECT_LT(rows, 62'000u);
  EXPECT_GT(comments_of_43, 0u);
  EXPECT_EQ(instructions.size(), 4u);
  EXPECT_EQ(modes.size(), 7u);
}

TEST(Lineitem, HasTheDependenciesOfTheSpecification) {
  Generator generator(kScale, 2);
  std::int64_t order = 0;
  std::int32_t line = 0;
  std::set<std::string> flags;
  while (const Row* const row = generator.next()) {
    if (row->orderkey != order) {
      ASSERT_GT(row->orderkey, order);
      order = row->orderkey;
      line = 0;
    }
    ASSERT_EQ(row->linenumber, ++line);
    // The part's price, which is between 900 and 2098.99 dollars.
    ASSERT_EQ(row->extendedprice % row->quantity, 0);
    const std::int64_t price = row->extendedprice / row->quantity;
    ASSERT_EQ(price, 90'000 + row->partkey / 10 + 100 * (row->partkey % 1000));
    bool is_supplier = false;
    for (std::int32_t i = 0; i < 4; ++i) {
      const std::int32_t step = kSuppliers / 4 + (row->partkey - 1) / kSuppliers;
      is_supplier = is_supplier || row->suppkey == (row->partkey + i * step) % kSuppliers + 1;
    }
    ASSERT_TRUE(is_supplier) << row->partkey << ' ' << row->suppkey;
    ASSERT_TRUE(row->receiptdate > row->shipdate && row->receiptdate <= row->shipdate + 30);
    const std::int32_t committed_after_shipping = row->commitdate - row->shipdate;
    ASSERT_TRUE(committed_after_shipping >= 30 - 121 && committed_after_shipping <= 90 - 1);
    ASSERT_EQ(row->returnflag == 'N', row->receiptdate > kCurrentDate);
    ASSERT_EQ(row->linestatus, row->shipdate > kCurrentDate ? 'O' : 'F');
    flags.insert({row->returnflag, row->linestatus});
  }
  // As in the answer of Q1.
  EXPECT_EQ(flags, (std::set<std::string>{"AF", "NF", "NO", "RF"}));
}

std::string csv_of(double scale, std::uint64_t seed) {
  Generator generator(scale, seed);
  std::string text;
  append_csv_header(text);
  while (const Row* const row = generator.next()) append_csv(*row, text);
  return text;
}

TEST(Lineitem, IsWrittenAsCsv) {
  Row row;
  row.orderkey = 33;
  row.partkey = 7;
  row.suppkey = 8;
  row.linenumber = 2;
  row.quantity = 17;
  row.extendedprice = 2'116'805;
  row.discount = 4;
  row.tax = 0;
  row.returnflag = 'N';
  row.linestatus = 'O';
  row.shipdate = kFirstDate + 59;
  row.commitdate = kFirstDate;
  row.receiptdate = kLastDate;
  row.shipinstruct = "NONE";
  row.shipmode = "REG AIR";
  row.comment = "calm rollers";
  std::string text;
  append_csv(row, text);
  EXPECT_EQ(text,
            "33,7,8,2,17.00,21168.05,0.04,0.00,N,O,1992-02-29,1992-01-01,1998-12-31,NONE,REG AIR,"
            "calm rollers\n");
}

TEST(Lineitem, OneSeedGivesTheSameRows) {
  const std::string text = csv_of(0.0001, 5);
  EXPECT_EQ(text, csv_of(0.0001, 5));
  EXPECT_NE(text, csv_of(0.0001, 6));
  EXPECT_GT(std::ranges::count(text, '\n'), 150);
}

}  // namespace
}  // namespace espalier::lineitem

// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/value_text.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "kinds/table/date_text.hpp"
#include "kinds/table/row_values.hpp"
#include "kinds/table/testing/random_table.hpp"

namespace espalier::table {
namespace {

/// What a column of this type makes of the text: the value as it is written, or "! " and why not.
std::string parsed_and_written(std::string_view type, std::string_view text) {
  const Schema schema = schema_of("c " + std::string(type));
  std::vector<std::byte> row(schema.row_bytes());
  if (const auto wrong = parse_value(schema.column(0), text, row.data())) {
    EXPECT_EQ(row, std::vector<std::byte>(row.size())) << "a refused value changed the row";
    return "! " + *wrong;
  }
  std::string out;
  append_value(out, schema.column(0), row.data());
  return out;
}

TEST(ValueText, Integers) {
  EXPECT_EQ(parsed_and_written("i8", "-128"), "-128");
  EXPECT_EQ(parsed_and_written("i8", " +007\t"), "7");
  EXPECT_EQ(parsed_and_written("i8", "128"), "! \"128\" is not from -128 to 127");
  EXPECT_EQ(parsed_and_written("i16", "32767"), "32767");
  EXPECT_EQ(parsed_and_written("i32", "-2147483649"),
            "! \"-2147483649\" is not from -2147483648 to 2147483647");
  EXPECT_EQ(parsed_and_written("i64", "-9223372036854775808"), "-9223372036854775808");
  EXPECT_TRUE(parsed_and_written("i64", "9223372036854775808")
                  .starts_with("! \"9223372036854775808\" is not"));
  for (const char* wrong : {"", " ", "-", "+", "+-1", "1.0", "1e3", "0x10", "1 2", "a", "1a"}) {
    EXPECT_TRUE(parsed_and_written("i64", wrong).ends_with(" is no i64")) << wrong;
  }
}

TEST(ValueText, DecimalsAreExact) {
  EXPECT_EQ(parsed_and_written("decimal(4,2)", "12.3"), "12.30");
  EXPECT_EQ(parsed_and_written("decimal(4,2)", "-0.05"), "-0.05");
  EXPECT_EQ(parsed_and_written("decimal(4,2)", "+.5"), "0.50");
  EXPECT_EQ(parsed_and_written("decimal(4,2)", "5."), "5.00");
  EXPECT_EQ(parsed_and_written("decimal(4,2)", "-0"), "0.00");
  EXPECT_EQ(parsed_and_written("decimal(4,2)", "00099.99"), "99.99");
  EXPECT_EQ(parsed_and_written("decimal(3)", "-999"), "-999");
  EXPECT_EQ(parsed_and_written("decimal(18,18)", "-.999999999999999999"), "-0.999999999999999999");
  EXPECT_EQ(parsed_and_written("decimal(18,0)", "999999999999999999"), "999999999999999999");
  EXPECT_EQ(parsed_and_written("decimal(4,2)", "1.005"),
            "! \"1.005\" has more than 2 digits behind the point, for decimal(4,2)");
  EXPECT_EQ(parsed_and_written("decimal(4,2)", "1.000"),
            "! \"1.000\" has more than 2 digits behind the point, for decimal(4,2)");
  EXPECT_EQ(parsed_and_written("decimal(4,2)", "100"),
            "! \"100\" has more than 2 digits before the point, for decimal(4,2)");
  EXPECT_EQ(parsed_and_written("decimal(18,18)", "1"),
            "! \"1\" has more than 0 digits before the point, for decimal(18,18)");
  for (const char* wrong :
       {"", ".", "-", "-.", "1..2", "1.2.3", "1e2", "--1", "1-", "nan", "1,5"}) {
    EXPECT_TRUE(parsed_and_written("decimal(4,2)", wrong).ends_with(" is no decimal(4,2)"))
        << wrong;
  }
}

TEST(ValueText, FloatsComeBackByTheirShortestText) {
  EXPECT_EQ(parsed_and_written("double", "0.1"), "0.1");
  EXPECT_EQ(parsed_and_written("double", "1e23"), "1e+23");
  EXPECT_EQ(parsed_and_written("double", "5e-324"), "5e-324");
  EXPECT_EQ(parsed_and_written("double", "-0"), "-0");
  EXPECT_EQ(parsed_and_written("double", "1.7976931348623157e308"), "1.7976931348623157e+308");
  EXPECT_EQ(parsed_and_written("double", "+INF"), "inf");
  EXPECT_EQ(parsed_and_written("double", "-Infinity"), "-inf");
  EXPECT_EQ(parsed_and_written("double", "-NaN"), "nan");
  EXPECT_EQ(parsed_and_written("float", "0.1"), "0.1");
  EXPECT_EQ(parsed_and_written("float", "16777217"), "16777216");
  EXPECT_EQ(parsed_and_written("float", "1e39"), "! \"1e39\" is outside of what a float can hold");
  EXPECT_EQ(parsed_and_written("double", "1e309"),
            "! \"1e309\" is outside of what a double can hold");
  for (const char* wrong : {"", "1.5x", "0x1p3", "nan(1)", "+-1", "e5", "1 5"}) {
    EXPECT_TRUE(parsed_and_written("double", wrong).ends_with(" is no double")) << wrong;
  }
}

TEST(ValueText, Bools) {
  for (const char* yes : {"true", "T", "Yes", "y", "ON", "1"})
    EXPECT_EQ(parsed_and_written("bool", yes), "true");
  for (const char* no : {"false", "F", "No", "n", "OFF", "0"})
    EXPECT_EQ(parsed_and_written("bool", no), "false");
  for (const char* wrong : {"", "2", "tru", "truee"}) {
    EXPECT_TRUE(parsed_and_written("bool", wrong).ends_with(" is no bool")) << wrong;
  }
}

TEST(ValueText, Texts) {
  EXPECT_EQ(parsed_and_written("text(4)", " a b"), " a b");
  EXPECT_EQ(parsed_and_written("text(4)", ""), "");
  EXPECT_EQ(parsed_and_written("text(4)", "abcde"), "! 5 bytes are more than text(4) holds");
  EXPECT_EQ(parsed_and_written("char(3)", "ab   "), "ab");
  EXPECT_EQ(parsed_and_written("char(3)", "  abc"), "! 5 bytes are more than char(3) holds");
}

TEST(ValueText, Dates) {
  for (const char* date : {"1970-01-01", "0001-01-01", "9999-12-31", "2024-02-29", "2000-02-29",
                           "1582-10-10", "1969-12-31"}) {
    EXPECT_EQ(parsed_and_written("date", date), date);
  }
  for (const char* wrong :
       {"", "2023-02-29", "1900-02-29", "2024-04-31", "2024-13-01", "2024-00-01", "2024-01-00",
        "0000-01-01", "24-01-01", "2024-1-1", "2024-01-01 ", "2024/01/01", "10000-01-01",
        "2024-01-32", "2024-01-011"}) {
    if (std::string_view(wrong).ends_with(' ')) continue;  // blanks around do not count
    EXPECT_TRUE(parsed_and_written("date", wrong).starts_with("! ")) << wrong;
  }
  EXPECT_EQ(parse_date("1992-01-02"), 8036);
  EXPECT_EQ(parse_date("0001-01-01"), wire::kDateMin);
  EXPECT_EQ(parse_date("9999-12-31"), wire::kDateMax);
}

// Every day of the years 1 to 9999, with days of months counted by hand.
TEST(ValueText, EveryDayComesBack) {
  std::int64_t day = wire::kDateMin;
  std::string expected;
  std::string written;
  for (int year = 1; year <= 9999; ++year) {
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    const int days[] = {31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    for (int month = 1; month <= 12; ++month) {
      for (int d = 1; d <= days[month - 1]; ++d, ++day) {
        if (year % 50 != 0 && d > 1 && d < days[month - 1])
          continue;  // in most years only the ends
        char text[40];
        std::snprintf(text, sizeof text, "%04d-%02d-%02d", year, month, d);
        written.clear();
        append_date(written, day);
        ASSERT_EQ(written, text);
        ASSERT_EQ(parse_date(text), day);
      }
      char none[40];
      std::snprintf(none, sizeof none, "%04d-%02d-%02d", year, month, days[month - 1] + 1);
      ASSERT_EQ(parse_date(none), std::nullopt) << none;
    }
  }
  EXPECT_EQ(day, wire::kDateMax + 1);
}

TEST(ValueText, Timestamps) {
  EXPECT_EQ(parsed_and_written("timestamp", "2024-02-29 23:59:59.000001"),
            "2024-02-29 23:59:59.000001");
  EXPECT_EQ(parsed_and_written("timestamp", "2024-02-29T12:30"), "2024-02-29 12:30:00");
  EXPECT_EQ(parsed_and_written("timestamp", "2024-02-29"), "2024-02-29 00:00:00");
  EXPECT_EQ(parsed_and_written("timestamp", "2024-02-29t12:00:00.50Z"), "2024-02-29 12:00:00.5");
  EXPECT_EQ(parsed_and_written("timestamp", "2024-03-01 00:30:00+01"), "2024-02-29 23:30:00");
  EXPECT_EQ(parsed_and_written("timestamp", "2024-02-29 23:30:00-01:30"), "2024-03-01 01:00:00");
  EXPECT_EQ(parsed_and_written("timestamp", "1969-12-31 23:59:59.999999+0000"),
            "1969-12-31 23:59:59.999999");
  EXPECT_EQ(parsed_and_written("timestamp", "0001-01-01 00:00:00"), "0001-01-01 00:00:00");
  EXPECT_EQ(parsed_and_written("timestamp", "9999-12-31 23:59:59.999999"),
            "9999-12-31 23:59:59.999999");
  for (const char* wrong :
       {"", "2024-02-30 00:00:00", "2024-02-29 24:00:00", "2024-02-29 12:60:00",
        "2024-02-29 12:00:60", "2024-02-29 12", "2024-02-29 12:00:00.",
        "2024-02-29 12:00:00.1234567", "2024-02-29 12:00:00 Z", "2024-02-29 12:00:00+1",
        "2024-02-29 12:00:00+16", "2024-02-29 12:00:00+01:60", "2024-02-29  12:00:00",
        "2024-02-29 12:00:00Zx", "0001-01-01 00:00:00+01", "9999-12-31 23:59:59-01"}) {
    EXPECT_TRUE(parsed_and_written("timestamp", wrong).find("is no timestamp") != std::string::npos)
        << wrong;
  }
}

// Whatever lies in a row is written without harm, and canonical values come back.
TEST(ValueText, AnyBytesAreWrittenAndCanonicalValuesComeBack) {
  base::Random random(base::seed_from_environment(6));
  for (int i = 0; i < 3000; ++i) {
    const Schema schema = random_schema(random, 6);
    std::vector<std::byte> row(schema.row_bytes());
    random.fill(row);
    std::string out;
    for (const Column& column : schema.columns()) append_value(out, column, row.data());
    ASSERT_LT(out.size(), 64 * schema.columns().size() + schema.row_bytes());

    const std::vector<std::byte> good = random_rows(random, schema, 1);
    std::vector<std::byte> back(good.size());
    for (const Column& column : schema.columns()) {
      if (is_null(column, good.data())) {
        ASSERT_TRUE(store_null(column, back.data()));
        continue;
      }
      out.clear();
      append_value(out, column, good.data());
      ASSERT_EQ(parse_value(column, out, back.data()), std::nullopt) << out;
    }
    ASSERT_EQ(back, good) << schema.to_text();
  }
}

}  // namespace
}  // namespace espalier::table

// SPDX-License-Identifier: Apache-2.0
#include "base/record_extent.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier::base {
namespace {

using Kind = RecordExtent::Kind;
using ::testing::ElementsAre;

std::vector<std::string> fields_of(std::string_view content, char separator = ',') {
  std::vector<std::string_view> fields;
  std::string scratch;
  split_csv(content, separator, fields, scratch);
  return {fields.begin(), fields.end()};
}

TEST(LineExtent, EndsAtNewlinesAndAtTheEnd) {
  EXPECT_EQ(line_extent("ab\ncd", false).content_bytes, 2U);
  EXPECT_EQ(line_extent("ab\r\ncd", false).content_bytes, 2U);
  EXPECT_EQ(line_extent("ab\r\ncd", false).total_bytes, 4U);
  EXPECT_EQ(line_extent("\n", false).content_bytes, 0U);
  EXPECT_EQ(line_extent("ab", false).kind, Kind::more);
  EXPECT_EQ(line_extent("ab\r", true).content_bytes, 3U);
}

TEST(CsvExtent, NewlinesInQuotesBelongToTheRecord) {
  const RecordExtent extent = csv_extent("a,\"1\n2\",b\nnext", ',', false);
  EXPECT_EQ(extent.kind, Kind::complete);
  EXPECT_EQ(extent.content_bytes, 9U);
  EXPECT_EQ(extent.total_bytes, 10U);
}

TEST(CsvExtent, QuotesInsideAnUnquotedFieldAreJustBytes) {
  EXPECT_EQ(csv_extent("5\" disk,2\nx", ',', false).total_bytes, 10U);
}

TEST(CsvExtent, AsksForMoreWhereTheEndIsNotYetKnown) {
  EXPECT_EQ(csv_extent("\"a\"", ',', false).kind, Kind::more);   // may be doubled
  EXPECT_EQ(csv_extent("\"a\"\r", ',', false).kind, Kind::more);  // may be CRLF
  EXPECT_EQ(csv_extent("\"a", ',', false).kind, Kind::more);
  EXPECT_EQ(csv_extent("a,b", ',', false).kind, Kind::more);
  EXPECT_EQ(csv_extent("\"a\"x", ',', false).kind, Kind::more);  // to the end of the bad line
}

TEST(CsvExtent, TellsWhatIsWrong) {
  EXPECT_EQ(csv_extent("\"a\"x,y\nz", ',', false).kind, Kind::text_after_quote);
  EXPECT_EQ(csv_extent("\"a\"x,y\nz", ',', false).total_bytes, 7U);
  EXPECT_EQ(csv_extent("\"a\"x", ',', true).kind, Kind::text_after_quote);
  EXPECT_EQ(csv_extent("\"a\"\r", ',', true).kind, Kind::text_after_quote);
  EXPECT_EQ(csv_extent("b,\"a", ',', true).kind, Kind::open_quote);
  EXPECT_EQ(csv_extent("\"a\"", ',', true).kind, Kind::complete);
}

TEST(CsvExtent, EveryCutOfARecordAsksForMoreOrAgrees) {
  const std::string_view text = "\"a\"\"b\r\n\",c,\"\"\r\nnext,1\n";
  const RecordExtent whole = csv_extent(text, ',', false);
  ASSERT_EQ(whole.kind, Kind::complete);
  ASSERT_EQ(whole.content_bytes, 13U);
  for (std::size_t cut = 1; cut < whole.total_bytes; ++cut) {
    EXPECT_EQ(csv_extent(text.substr(0, cut), ',', false).kind, Kind::more) << cut;
  }
}

TEST(SplitCsv, UndoesQuotes) {
  EXPECT_THAT(fields_of("a,b,"), ElementsAre("a", "b", ""));
  EXPECT_THAT(fields_of(""), ElementsAre(""));
  EXPECT_THAT(fields_of("\"a,\"\"b\"\"\",\"\",x"), ElementsAre("a,\"b\"", "", "x"));
  EXPECT_THAT(fields_of("\"1\r\n2\";3", ';'), ElementsAre("1\r\n2", "3"));
  EXPECT_THAT(fields_of("\"\"\"\""), ElementsAre("\""));
}

TEST(SplitCsv, SaysWhatStoodInQuotes) {
  std::vector<std::string_view> fields;
  std::string scratch;
  std::vector<bool> quoted;
  split_csv("a,\"a\",,\"\"", ',', fields, scratch, &quoted);
  EXPECT_EQ(quoted, (std::vector<bool>{false, true, false, true}));
  split_csv("", ',', fields, scratch, &quoted);
  EXPECT_EQ(quoted, std::vector<bool>{false});
}

TEST(AppendCsvField, QuotesWhatNeedsIt) {
  const auto appended = [](std::string_view field, bool first = false) {
    std::string out;
    append_csv_field(out, field, ';', first);
    return out;
  };
  EXPECT_EQ(appended("a b,c'"), "a b,c'");
  EXPECT_EQ(appended(""), "");
  EXPECT_EQ(appended("a;b"), "\"a;b\"");
  EXPECT_EQ(appended("a\"b"), "\"a\"\"b\"");
  EXPECT_EQ(appended("a\r"), "\"a\r\"");
  EXPECT_EQ(appended("a\nb"), "\"a\nb\"");
  EXPECT_EQ(appended("\xEF\xBB\xBFx"), "\xEF\xBB\xBFx");
  EXPECT_EQ(appended("\xEF\xBB\xBFx", true), "\"\xEF\xBB\xBFx\"");
}

}  // namespace
}  // namespace espalier::base

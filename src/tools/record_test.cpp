// SPDX-License-Identifier: Apache-2.0
#include "tools/record.hpp"

#include <gtest/gtest.h>

namespace espalier::tools {
namespace {

TEST(Record, NamesTellFormats) {
  EXPECT_EQ(format_of_name("a/b.csv"), Format::csv);
  EXPECT_EQ(format_of_name("B.TSV"), Format::tsv);
  EXPECT_EQ(format_of_name("x.tab"), Format::tsv);
  EXPECT_EQ(format_of_name("x.jsonl"), Format::json_lines);
  EXPECT_EQ(format_of_name("x.ndjson"), Format::json_lines);
  EXPECT_EQ(format_of_name("words"), std::nullopt);
  EXPECT_EQ(format_of_name("words.txt"), std::nullopt);
}

TEST(Record, ContentTellsFormats) {
  EXPECT_EQ(format_of_content("", ',', true), Format::lines);
  EXPECT_EQ(format_of_content("apple\npear\n", ',', true), Format::lines);
  EXPECT_EQ(format_of_content("apple,1\npear,2\n", ',', true), Format::csv);
  EXPECT_EQ(format_of_content("apple;1\npear;2\n", ';', true), Format::csv);
  EXPECT_EQ(format_of_content("apple\t1\r\n\r\npear\t2", ',', true), Format::tsv);
  EXPECT_EQ(format_of_content("a\t1,2\nb\t3,4\n", ',', true), Format::tsv);
  EXPECT_EQ(format_of_content("{\"key\":\"a\"}\n", ',', true), Format::json_lines);
}

TEST(Record, SeparatorsInSomeLinesDoNotMakeATable) {
  EXPECT_EQ(format_of_content("well, then\nyes\n", ',', true), Format::lines);
  EXPECT_EQ(format_of_content("a, b\na, b, c\n", ',', true), Format::lines);
}

TEST(Record, QuotedSeparatorsAreNotCounted) {
  EXPECT_EQ(format_of_content("a,\"1,2\"\nb,3\n", ',', true), Format::csv);
}

TEST(Record, TheCutOffLastLineOfASampleIsNotCounted) {
  EXPECT_EQ(format_of_content("a,1\nb,2\nc", ',', false), Format::csv);
  EXPECT_EQ(format_of_content("a,1\nb,2\nc", ',', true), Format::lines);
}

}  // namespace
}  // namespace espalier::tools

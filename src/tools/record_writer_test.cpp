// SPDX-License-Identifier: Apache-2.0
#include "tools/record_writer.hpp"

#include <gtest/gtest.h>

#include "tools/record_reader.hpp"
#include "tools/testing/memory_files.hpp"

namespace espalier::tools {
namespace {

using namespace std::string_literals;

std::string written(Format format, const std::string& key, const std::string& value,
                    char separator = ',') {
  std::string out;
  RecordWriter writer(format, separator);
  const auto wrong = writer.append(out, key, value);
  return wrong ? "!" + *wrong : out;
}

TEST(RecordWriter, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(written(Format::csv, "a", "b c"), "a,b c\n");
  EXPECT_EQ(written(Format::csv, "a,b", "say \"hi\""), "\"a,b\",\"say \"\"hi\"\"\"\n");
  EXPECT_EQ(written(Format::csv, "a,b", "c;d", ';'), "a,b;\"c;d\"\n");
  EXPECT_EQ(written(Format::csv, "a\n", "\r"), "\"a\n\",\"\r\"\n");
}

TEST(RecordWriter, EscapesTsvAndJson) {
  EXPECT_EQ(written(Format::tsv, "a\tb", "c\\d\n"), "a\\tb\tc\\\\d\\n\n");
  EXPECT_EQ(written(Format::json_lines, "a\"", "\xFF"),
            "{\"key\":\"a\\\"\",\"value_hex\":\"ff\"}\n");
}

TEST(RecordWriter, RefusesKeysThatAreNoLine) {
  EXPECT_EQ(written(Format::lines, "a", "dropped"), "a\n");
  EXPECT_EQ(written(Format::lines, "a\nb", ""), "!a key with a newline is not one line");
  EXPECT_EQ(written(Format::lines, "a\r", ""),
            "!a carriage return at the end of a line would be lost");
  EXPECT_EQ(written(Format::lines, "", ""), "!an empty key would be a blank line");
}

TEST(RecordWriter, WhatIsWrittenIsReadBack) {
  const std::vector<std::string> samples{"a",
                                         "\xEF\xBB\xBF",
                                         "\xEF\xBB\xBF"
                                         "a",
                                         "\"",
                                         "\"\"",
                                         ",",
                                         "\t",
                                         "\\",
                                         "\\t",
                                         "a\r",
                                         "\r",
                                         "\n",
                                         "a\r\nb",
                                         "\0"s,
                                         " lead",
                                         "trail ",
                                         "{\"key\"",
                                         "\xFF\xFE",
                                         "caf\xC3\xA9",
                                         "#"};
  for (const Format format : {Format::lines, Format::csv, Format::tsv, Format::json_lines}) {
    for (const std::string& key : samples) {
      for (const std::string& value : samples) {
        std::string out;
        RecordWriter writer(format);
        if (writer.append(out, key, value)) continue;
        ASSERT_EQ(writer.append(out, "next", key), std::nullopt);
        MemorySource source(out, 5);
        ReaderOptions options;
        options.format = format;
        RecordReader reader(source, options);
        ASSERT_EQ(reader.next(), RecordReader::Next::record) << out;
        EXPECT_EQ(reader.record().key, key);
        EXPECT_EQ(reader.record().value, format == Format::lines ? "" : value);
        ASSERT_EQ(reader.next(), RecordReader::Next::record) << out;
        EXPECT_EQ(reader.record().key, "next");
        EXPECT_EQ(reader.next(), RecordReader::Next::end);
      }
    }
  }
}

}  // namespace
}  // namespace espalier::tools

// SPDX-License-Identifier: Apache-2.0
#include "tools/record_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/testing/memory_files.hpp"

namespace espalier::tools {
namespace {

using namespace std::string_literals;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// Everything that a reader says about some bytes, a line per record or report.
struct Reading {
  std::vector<std::string> records;  // "line:key=value"
  std::vector<std::string> bad;      // "line:reason"
  std::uint64_t blank_lines = 0;
  Format format = Format::lines;
  std::string header;
  bool failed = false;
};

Reading read_all(ByteSource& source, const ReaderOptions& options) {
  RecordReader reader(source, options);
  Reading reading;
  for (;;) {
    const RecordReader::Next next = reader.next();
    if (next == RecordReader::Next::end) break;
    if (next == RecordReader::Next::failed) {
      reading.failed = true;
      break;
    }
    if (next == RecordReader::Next::bad) {
      reading.bad.push_back(std::to_string(reader.bad().line) + ":" + reader.bad().reason);
      continue;
    }
    const Record& record = reader.record();
    std::string line = std::to_string(record.line) + ":";
    line.append(record.key).append("=").append(record.value);
    reading.records.push_back(std::move(line));
  }
  reading.blank_lines = reader.blank_lines();
  reading.format = reader.format();
  reading.header = reader.header();
  return reading;
}

/// Reads the bytes in pieces of several sizes, which must make no difference.
Reading read_in_pieces(const std::string& bytes, const ReaderOptions& options = {}) {
  MemorySource whole(bytes);
  Reading reading = read_all(whole, options);
  for (const std::size_t piece : {1UL, 3UL, 64UL}) {
    MemorySource source(bytes, piece);
    const Reading again = read_all(source, options);
    EXPECT_EQ(again.records, reading.records) << "pieces of " << piece;
    EXPECT_EQ(again.bad, reading.bad) << "pieces of " << piece;
  }
  return reading;
}

ReaderOptions in(Format format) {
  ReaderOptions options;
  options.format = format;
  return options;
}

TEST(RecordReader, LinesAreKeys) {
  const Reading reading = read_in_pieces("apple\npear\r\n\n na\0me\nlast"s, in(Format::lines));
  EXPECT_THAT(reading.records, ElementsAre("1:apple=", "2:pear=", "4: na\0me="s, "5:last="));
  EXPECT_EQ(reading.blank_lines, 1U);
}

TEST(RecordReader, LinesMayCarryTheirNumbers) {
  ReaderOptions options = in(Format::lines);
  options.number_lines = true;
  EXPECT_THAT(read_in_pieces("a\n\nb\n", options).records, ElementsAre("1:a=1", "3:b=3"));
}

TEST(RecordReader, NothingHasNoRecords) {
  EXPECT_THAT(read_in_pieces("").records, IsEmpty());
  EXPECT_THAT(read_in_pieces("\n\r\n").records, IsEmpty());
  EXPECT_THAT(read_in_pieces("\xEF\xBB\xBF").records, IsEmpty());
}

TEST(RecordReader, OneByteOrderMarkIsSkipped) {
  EXPECT_THAT(read_in_pieces("\xEF\xBB\xBF"
                             "a,1\n")
                  .records,
              ElementsAre("1:a=1"));
  EXPECT_THAT(read_in_pieces("\xEF\xBB\xBF\xEF\xBB\xBF"
                             "a\n")
                  .records,
              ElementsAre("1:\xEF\xBB\xBF"
                          "a="));
}

TEST(RecordReader, CsvCountsTheLinesInsideQuotes) {
  const Reading reading = read_in_pieces("a,\"1\n2\"\nb,3\n", in(Format::csv));
  EXPECT_THAT(reading.records, ElementsAre("1:a=1\n2", "3:b=3"));
}

TEST(RecordReader, ChoosesColumns) {
  ReaderOptions options = in(Format::csv);
  options.key_column = 3;
  options.value_column = 1;
  EXPECT_THAT(read_in_pieces("x,y,z\n", options).records, ElementsAre("1:z=x"));
  options.value_column.reset();
  EXPECT_THAT(read_in_pieces("x,y,z\n", options).records, ElementsAre("1:z="));
  options.key_column = 2;
  EXPECT_THAT(read_in_pieces("x,y,z\n", options).records, ElementsAre("1:y=z"));
}

TEST(RecordReader, AMissingColumnIsABadLine) {
  ReaderOptions options = in(Format::tsv);
  options.value_column = 3;
  const Reading reading = read_in_pieces("a\tb\nc\td\te\n", options);
  EXPECT_THAT(reading.bad, ElementsAre("1:has 2 columns, but the value is to be column 3"));
  EXPECT_THAT(reading.records, ElementsAre("2:c=e"));
}

TEST(RecordReader, AllRecordsHaveAsManyColumnsAsTheFirst) {
  const Reading reading = read_in_pieces("a,1\nb,2,3\nc\nd,4\n", in(Format::csv));
  EXPECT_THAT(reading.records, ElementsAre("1:a=1", "4:d=4"));
  EXPECT_THAT(reading.bad,
              ElementsAre("2:has 3 columns where the first record has 2; a field with a separator "
                          "in it needs quotes",
                          "3:has 1 column where the first record has 2"));
}

TEST(RecordReader, TheHeaderIsKeptApart) {
  ReaderOptions options = in(Format::csv);
  options.header = true;
  const Reading reading = read_in_pieces("\"the\nkey\",value\r\na,1\n", options);
  EXPECT_EQ(reading.header, "\"the\nkey\",value");
  EXPECT_THAT(reading.records, ElementsAre("3:a=1"));
}

TEST(RecordReader, AStrayQuoteLosesItsOwnLineOnly) {
  const Reading reading = read_in_pieces("a,1\n\"b,2\nc,3\nd,4\n", in(Format::csv));
  EXPECT_THAT(reading.records, ElementsAre("1:a=1", "3:c=3", "4:d=4"));
  EXPECT_THAT(reading.bad, ElementsAre("2:a quote opens here and never closes"));
}

TEST(RecordReader, AQuoteThatClosesWrongLosesTheLinesItSpans) {
  const Reading reading = read_in_pieces("\"a\nb\"c,1\nd,2\n\"e\"f,3\n", in(Format::csv));
  EXPECT_THAT(reading.records, ElementsAre("3:d=2"));
  EXPECT_THAT(reading.bad,
              ElementsAre("1:text stands behind a closing quote on line 2; lines 1 to 2 are left "
                          "out; inside quotes, write \"\" for a quote",
                          "4:text stands behind a closing quote; inside quotes, write \"\" for a "
                          "quote"));
}

TEST(RecordReader, OverlongRecordsAreReportedAndPassed) {
  for (const Format format : {Format::lines, Format::csv, Format::tsv, Format::json_lines}) {
    ReaderOptions options = in(format);
    options.record_bytes_max = 40;
    const std::string good = format == Format::json_lines ? "{\"key\":\"k\"}" : "k";
    const Reading reading = read_in_pieces(
        good + "\n" + std::string(1000, 'x') + "\n" + good + "\n" + std::string(1000, 'y'),
        options);
    EXPECT_THAT(reading.records, ElementsAre("1:k=", "3:k=")) << name(format);
    ASSERT_EQ(reading.bad.size(), 2U) << name(format);
    EXPECT_THAT(reading.bad[0], StartsWith("2:the "));
    EXPECT_THAT(reading.bad[0], EndsWith(" is longer than 40 bytes"));
  }
}

TEST(RecordReader, AnOverlongLineTakesNoMoreMemoryThanTheLimit) {
  // 400 KiB of line with a limit of 40 bytes: were it kept, the report would come only at its end,
  // and as a record. That it is cut is seen from the reason.
  ReaderOptions options = in(Format::lines);
  options.record_bytes_max = 40;
  MemorySource source(std::string(400 << 10, 'x') + "\nk\n", 100);
  const Reading reading = read_all(source, options);
  EXPECT_THAT(reading.bad, ElementsAre("1:the line is longer than 40 bytes"));
  EXPECT_THAT(reading.records, ElementsAre("2:k="));
}

TEST(RecordReader, AnOverlongQuotedRecordLosesItsFirstLine) {
  ReaderOptions options = in(Format::csv);
  options.record_bytes_max = 40;
  std::string text = "a,\"open\n";
  for (int i = 0; i < 100'000; ++i) text += "b,1\n";
  text += "c,\"\"\n";
  MemorySource source(text, 100);
  const Reading reading = read_all(source, options);
  EXPECT_EQ(reading.records.size(), 100'001U);
  EXPECT_THAT(reading.bad, ElementsAre("1:a quote opens here and does not close within 40 bytes"));
}

TEST(RecordReader, ReadsJsonLines) {
  const Reading reading = read_in_pieces(
      "{\"key\":\"a\",\"value\":\"1\"}\n{\"key_hex\":\"ff\"}\n{}\n[]\nnonsense\n"
      "{\"key\":1}\n{\"key\":\"a\",\"key_hex\":\"61\"}\n{\"key_hex\":\"f\"}\n");
  EXPECT_EQ(reading.format, Format::json_lines);
  EXPECT_THAT(reading.records, ElementsAre("1:a=1", "2:\xFF="));
  EXPECT_THAT(reading.bad,
              ElementsAre("3:has no \"key\"", "4:is JSON, but not an object", "5:is not valid JSON",
                          "6:\"key\" is not a string", "7:has both \"key\" and \"key_hex\"",
                          "8:hex text has 1 digits; two are needed for each byte"));
}

TEST(RecordReader, TellsTheFormatFromTheContent) {
  EXPECT_EQ(read_in_pieces("a\tb\nc\td\n").format, Format::tsv);
  EXPECT_EQ(read_in_pieces("a,b\nc,d\n").format, Format::csv);
  EXPECT_EQ(read_in_pieces("a\nc,d\n").format, Format::lines);
}

TEST(RecordReader, SaysWhenTheSourceFails) {
  MemorySource source("a\nb\nc\n", 2);
  source.fail_after(4, EIO);
  RecordReader reader(source, in(Format::lines));
  RecordReader::Next next = RecordReader::Next::record;
  while (next == RecordReader::Next::record) next = reader.next();
  EXPECT_EQ(next, RecordReader::Next::failed);
  EXPECT_EQ(reader.error(), (Error{Code::system, 0, EIO}));
}

}  // namespace
}  // namespace espalier::tools

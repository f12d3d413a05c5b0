// SPDX-License-Identifier: Apache-2.0
#include "base/record_splitter.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/testing/memory_source.hpp"

namespace espalier::base {
namespace {

using Next = RecordSplitter::Next;

/// All that comes, a string each: "line: content" or "line! reason".
std::vector<std::string> split(std::string_view bytes, RecordSplitter::Options options,
                               std::size_t piece_bytes = 3) {
  MemorySource source{std::string(bytes), piece_bytes};
  RecordSplitter splitter(source, options);
  std::vector<std::string> all;
  for (;;) {
    const Next next = splitter.next();
    if (next == Next::end) break;
    EXPECT_NE(next, Next::failed);
    all.push_back(std::to_string(splitter.line()) + (next == Next::bad
                                                         ? "! " + splitter.reason()
                                                         : ": " + std::string(splitter.content())));
  }
  EXPECT_EQ(splitter.consumed_bytes(), bytes.size());
  return all;
}

using Lines = std::vector<std::string>;

TEST(RecordSplitter, LinesAreRecordsUnlessThereIsASeparator) {
  EXPECT_EQ(split("a\n\"b\n\nc\"\r\n", {}), (Lines{"1: a", "2: \"b", "3: ", "4: c\""}));
  EXPECT_EQ(split("a\n\"b\n\nc\"\r\nd", {.separator = ','}),
            (Lines{"1: a", "2: \"b\n\nc\"", "5: d"}));
  EXPECT_EQ(split("", {}), Lines{});
}

TEST(RecordSplitter, AByteOrderMarkIsSkippedAtTheBeginningOnly) {
  for (const std::size_t piece : {1u, 2u, 100u}) {
    EXPECT_EQ(split("\xEF\xBB\xBF"
                    "a\n\xEF\xBB\xBF"
                    "b",
                    {}, piece),
              (Lines{"1: a",
                     "2: \xEF\xBB\xBF"
                     "b"}));
  }
}

TEST(RecordSplitter, GoesOnBehindWhatIsNoRecord) {
  EXPECT_EQ(split("\"a\"x\nb\n\"c\nd\n", {.separator = ','}),
            (Lines{"1! text stands behind a closing quote; inside quotes, write \"\" for a quote",
                   "2: b", "3! a quote opens here and never closes", "4: d"}));
  EXPECT_EQ(split("\"a\n\"x\nb", {.separator = ','}),
            (Lines{"1! text stands behind a closing quote on line 2; lines 1 to 2 are left out; "
                   "inside quotes, write \"\" for a quote",
                   "3: b"}));
  const RecordSplitter::Options few{.separator = ',', .record_bytes_max = 5};
  for (const std::size_t piece : {1u, 3u, 100u}) {
    EXPECT_EQ(split("123456\n12345\r\n1234567", few, piece),
              (Lines{"1! the line is longer than 5 bytes", "2: 12345",
                     "3! the line is longer than 5 bytes"}));
    EXPECT_EQ(split("\"123\"\r\n\"1\n34\"\n7\n", few, piece),
              (Lines{"1: \"123\"", "2! a quote opens here and does not close within 5 bytes",
                     "3: 34\"", "4: 7"}));
  }
}

TEST(RecordSplitter, TheSampleIsReadAgainAsRecords) {
  MemorySource source("ab\ncd\n", 2);
  RecordSplitter splitter(source, {});
  EXPECT_EQ(splitter.sample(3).value().substr(0, 4), "ab\nc");
  EXPECT_FALSE(splitter.sample_is_all());
  ASSERT_EQ(splitter.next(), Next::record);
  EXPECT_EQ(splitter.content(), "ab");
}

TEST(RecordSplitter, PassesOnTheErrorOfItsSource) {
  MemorySource source("ab\ncd\n", 2);
  source.fail_after(4, EIO);
  RecordSplitter splitter(source, {});
  Next next = splitter.next();
  while (next == Next::record) next = splitter.next();
  ASSERT_EQ(next, Next::failed);
  EXPECT_EQ(splitter.error(), (Error{Code::system, 0, EIO}));
}

}  // namespace
}  // namespace espalier::base

// SPDX-License-Identifier: Apache-2.0
#include "tools/loader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tools/testing/memory_files.hpp"

namespace espalier::tools {
namespace {

using ::testing::HasSubstr;

class LoaderTest : public ::testing::Test {
 protected:
  Outcome<Dataset> load(const SourceOptions& options) {
    MemorySource input(standard_input);
    Environment environment{.input = input,
                            .out = out,
                            .err = err,
                            .files = files,
                            .err_is_terminal = terminal,
                            .now_ns = [this] { return clock_ns += 1'000'000'000; },
                            .memory_bytes_max = std::uint64_t{64} << 20};
    return tools::load(environment, options);
  }
  static SourceOptions of(std::vector<std::string> names) {
    SourceOptions options;
    options.files = std::move(names);
    return options;
  }

  MemoryFiles files;
  std::string standard_input;
  bool terminal = false;
  std::uint64_t clock_ns = 0;
  std::ostringstream out;
  std::ostringstream err;
};

TEST_F(LoaderTest, LaterRecordsWin) {
  files.contents["a.csv"] = "k,1\nm,1\nk,2\n";
  files.contents["b.tsv"] = "m\t3\n\n";
  const auto data = load(of({"a.csv", "b.tsv"}));
  ASSERT_TRUE(data);
  EXPECT_EQ(data->map.get("k").value()->value, "2");
  EXPECT_EQ(data->map.get("m").value()->value, "3");
  EXPECT_EQ(data->report.records, 4U);
  EXPECT_EQ(data->report.duplicates, 2U);
  EXPECT_EQ(data->report.blank_lines, 1U);
  EXPECT_EQ(data->report.input_bytes, 17U);
  EXPECT_EQ(data->report.format, Format::tsv);
  const auto payload = measure(data->map);
  ASSERT_TRUE(payload);
  EXPECT_EQ(payload->items, 2U);
  EXPECT_EQ(payload->key_bytes, 2U);
  EXPECT_EQ(payload->value_bytes, 2U);
}

TEST_F(LoaderTest, BadLinesAreToldAndDoNotStopIt) {
  files.contents["a.csv"] = "k,1\n\"\",2\n" + std::string(500, 'x') + ",3\nz,4\n";
  const auto data = load(of({"a.csv"}));
  ASSERT_TRUE(data);
  EXPECT_EQ(data->report.records, 2U);
  EXPECT_EQ(data->report.bad_lines, 2U);
  EXPECT_EQ(err.str(),
            "a.csv:2: bad line: the key is empty\n"
            "a.csv:3: bad line: the key has 500 bytes; the limit is 460\n");
}

TEST_F(LoaderTest, AValueBeyondTheLimitIsABadLine) {
  files.contents["a.tsv"] = "k\t" + std::string((16 << 20) + 1, 'v') + "\nm\t1\n";
  const auto data = load(of({"a.tsv"}));
  ASSERT_TRUE(data);
  EXPECT_EQ(data->report.records, 1U);
  EXPECT_EQ(err.str(), "a.tsv:1: bad line: the value has 16.0 MiB; the limit is 16 MiB\n");
}

TEST_F(LoaderTest, OnlyTheFirstBadLinesAreShown) {
  std::string text = "a,1\n";
  for (int i = 0; i < 1000; ++i) text += "bad\n";
  files.contents["a.csv"] = text;
  const auto data = load(of({"a.csv"}));
  ASSERT_TRUE(data);
  EXPECT_EQ(data->report.bad_lines, 1000U);
  EXPECT_EQ(data->report.shown.size(), LoadReport::kShownMax);
  EXPECT_THAT(err.str(), HasSubstr("espalier: note: 980 more bad lines are not shown\n"));
}

TEST_F(LoaderTest, StrictnessIsCheckedAfterwards) {
  files.contents["a.csv"] = "a,1\nbad\nbad\nb,2\n";
  SourceOptions options = of({"a.csv"});
  options.strict = true;
  const auto data = load(options);
  ASSERT_TRUE(data);
  EXPECT_EQ(data->report.records, 2U);
  EXPECT_EQ(check_clean(options, data->report).error().what,
            "2 bad lines, and --strict allows none");
  options.strict = false;
  EXPECT_TRUE(check_clean(options, data->report));
}

TEST_F(LoaderTest, GivesUpAfterTooManyBadLines) {
  files.contents["a.csv"] = "a,1\nbad\nbad\nb,2\n";
  SourceOptions options = of({"a.csv"});
  options.bad_lines_max = 1;
  const auto data = load(options);
  ASSERT_TRUE(data);
  EXPECT_TRUE(data->report.stopped_early);
  EXPECT_EQ(data->report.records, 1U);
  EXPECT_FALSE(check_clean(options, data->report));
  options.bad_lines_max = 2;
  EXPECT_FALSE(load(options)->report.stopped_early);
}

TEST_F(LoaderTest, AFullMapIsAFailureWithAHint) {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += std::to_string(i) + "\t" + std::string(100, 'v') + "\n";
  files.contents["a.tsv"] = text;
  SourceOptions options = of({"a.tsv"});
  options.memory_bytes_max = 24 << 20;
  const auto data = load(options);
  ASSERT_FALSE(data);
  EXPECT_THAT(data.error().what, HasSubstr("the map's memory limit is reached after"));
  EXPECT_THAT(data.error().hint, HasSubstr("--memory-max"));
  options.memory_bytes_max = 1;
  EXPECT_THAT(load(options).error().hint, HasSubstr("--memory-max"));
}

TEST_F(LoaderTest, ReadsStandardInput) {
  standard_input = "a\t1\n";
  EXPECT_EQ(load(of({"-"}))->report.records, 1U);
}

TEST_F(LoaderTest, SaysWhyAFileCannotBeRead) {
  EXPECT_EQ(load(of({"none"})).error().what, "cannot open 'none': No such file or directory");
}

TEST_F(LoaderTest, RefusesAMapThatCannotBe) {
  SourceOptions options = of({"-"});
  options.map.node_bytes = 1000;
  EXPECT_THAT(load(options).error().hint, HasSubstr("--node-bytes is a power of two"));
}

TEST_F(LoaderTest, ShowsProgressOnATerminal) {
  for (int i = 0; i < 10'000; ++i) files.contents["words"] += std::to_string(i) + "\n";
  terminal = true;
  ASSERT_TRUE(load(of({"words"})));
  EXPECT_THAT(err.str(), HasSubstr("loading: 1,024 records, 3.9 KiB of 47.7 KiB (8 %)"));
  EXPECT_TRUE(err.str().ends_with("\r\x1b[K"));
}

}  // namespace
}  // namespace espalier::tools

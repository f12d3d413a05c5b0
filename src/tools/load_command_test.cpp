// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/testing/tool_fixture.hpp"

namespace espalier::tools {
namespace {

using ::testing::HasSubstr;

TEST(LoadCommand, TellsHowItWent) {
  Tool tool;
  tool.files.contents["a.csv"] = "k,1\nm,22\nk,333\n\nbad\n";
  EXPECT_EQ(tool.run({"load", "a.csv"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("records     3 in 20 B ("));
  EXPECT_THAT(tool.out(), HasSubstr("items       2; 1 repeated a key, the last one stays\n"));
  EXPECT_THAT(tool.out(), HasSubstr("bad lines   1\nblank lines 1\n"));
  EXPECT_THAT(tool.out(), HasSubstr("keys        2 B\nvalues      5 B\n"));
  EXPECT_EQ(tool.err(), "a.csv:5: bad line: has 1 column where the first record has 2\n");
}

TEST(LoadCommand, FillsAHashMap) {
  Tool tool;
  tool.files.contents["a.csv"] = "k,1\nm,22\nk,333\n\nbad\n";
  EXPECT_EQ(tool.run({"load", "--kind", "hash", "a.csv"}), kOk) << tool.err();
  EXPECT_THAT(tool.out(), HasSubstr("records     3 in 20 B ("));
  EXPECT_THAT(tool.out(), HasSubstr("items       2; 1 repeated a key, the last one stays\n"));
  EXPECT_THAT(tool.out(), HasSubstr("keys        2 B\nvalues      5 B\n"));
  EXPECT_EQ(tool.run({"load", "--kind", "hash", "--log-bytes", "64", "a.csv"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("--log-bytes says what an ordered map is like"));
  EXPECT_EQ(tool.run({"load", "--kind", "hash", "--partitions", "3", "a.csv"}), kFailed);
}

TEST(LoadCommand, PrintsJson) {
  Tool tool;
  tool.files.contents["a\xFF.csv"] = "k,1\nbad\n";
  EXPECT_EQ(tool.run({"load", "--json", "a\xFF.csv"}), kOk);
  const auto object = nlohmann::json::parse(tool.out());
  EXPECT_EQ(object["records"], 1);
  EXPECT_EQ(object["items"], 1);
  EXPECT_EQ(object["bad_lines"], 1);
  EXPECT_EQ(object["files"][0], "a\\xff.csv");
  EXPECT_EQ(object["first_bad_lines"][0]["line"], 2);
  EXPECT_EQ(object["first_bad_lines"][0]["file"], "a\\xff.csv");
}

TEST(LoadCommand, BadLinesFailItOnlyOnRequest) {
  Tool tool;
  tool.files.contents["a.csv"] = "k,1\nbad\n";
  EXPECT_EQ(tool.run({"load", "a.csv"}), kOk);
  EXPECT_EQ(tool.run({"load", "--strict", "a.csv"}), kFailed);
  EXPECT_THAT(tool.out(), HasSubstr("records     1"));
  EXPECT_EQ(tool.run({"load", "--max-errors", "0", "a.csv"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("gave up after 1 bad lines; --max-errors allows 0"));
}

TEST(LoadCommand, OptionsSayHowToReadTheFile) {
  Tool tool;
  tool.files.contents["people"] = "id;name;age\n7;Ada;36\n";
  EXPECT_EQ(tool.run({"scan", "-f", "people", "--format", "csv", "--separator", ";", "--header",
                      "--key-column", "2"}),
            kOk);
  EXPECT_EQ(tool.out(), "Ada\t36\n");
  EXPECT_EQ(tool.run({"scan", "-f", "people", "--format", "csv", "--separator", ";;"}), kUsage);
  EXPECT_EQ(tool.run({"scan", "-f", "people", "--key-column", "0"}), kUsage);
  EXPECT_EQ(tool.run({"scan", "-f", "people", "--format", "xml"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("'xml' is not one of auto|lines|csv|tsv|json-lines"));
}

TEST(LoadCommand, NumbersAreWholeAndNotNegative) {
  Tool tool;
  tool.input = "a\tb\n";
  for (const std::string option :
       {"--max-errors", "--key-column", "--value-column", "--node-bytes", "--log-bytes"}) {
    for (const std::string bad : {"-1", "abc", "99999999999999999999", "nan"}) {
      EXPECT_EQ(tool.run({"load", "-", option, bad}), kUsage) << option << bad;
      EXPECT_THAT(tool.err(), testing::HasSubstr(option + ": '" + bad + "' is not a whole number"));
    }
  }
}

}  // namespace
}  // namespace espalier::tools

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <streambuf>

#include "tools/item_output.hpp"
#include "tools/testing/tool_fixture.hpp"

namespace espalier::tools {
namespace {

class ScanCommand : public ::testing::Test {
 protected:
  ScanCommand() {
    tool.files.contents["p.csv"] = "b,2\na,1\nd,4\nc,3\n\"b\t\",\"2\n\"\n";
    tool.files.contents["words"] = "beta\nalpha\nbet\ngamma\n";
  }
  std::string scan(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"scan", "--file", "p.csv"});
    exit_code = tool.run(arguments);
    return tool.out();
  }
  Tool tool;
  int exit_code = -1;
};

TEST_F(ScanCommand, PrintsARangeInKeyOrder) {
  EXPECT_EQ(scan({}), "a\t1\nb\t2\nb\\t\t2\\n\nc\t3\nd\t4\n");
  EXPECT_EQ(exit_code, kOk);
  EXPECT_EQ(scan({"b", "d"}), "b\t2\nb\\t\t2\\n\nc\t3\n");
  EXPECT_EQ(scan({"c"}), "c\t3\nd\t4\n");
  EXPECT_EQ(scan({"", "b"}), "a\t1\n");
  EXPECT_EQ(scan({"x", "z"}), "");
  EXPECT_EQ(exit_code, kOk);
}

TEST_F(ScanCommand, TurnsAround) {
  EXPECT_EQ(scan({"--reverse", "-l", "2"}), "d\t4\nc\t3\n");
  EXPECT_EQ(scan({"-r", "a", "b"}), "a\t1\n");
}

TEST_F(ScanCommand, BeginsAtTheFloorAndIncludesTheEnd) {
  EXPECT_EQ(scan({"--floor", "bb", "c"}), "b\\t\t2\\n\nc\t3\n");
  EXPECT_EQ(scan({"--floor"}), "");
  EXPECT_EQ(exit_code, kUsage);
  EXPECT_EQ(scan({"--floor", "-r", "a"}), "");
  EXPECT_EQ(exit_code, kUsage);
}

TEST_F(ScanCommand, TakesAPrefix) {
  EXPECT_EQ(scan({"--prefix", "b", "--keys-only"}), "b\nb\\t\n");
  EXPECT_EQ(scan({"--prefix="}), scan({}));
  EXPECT_EQ(scan({"--prefix", "b", "a"}), "");
  EXPECT_EQ(exit_code, kUsage);
  EXPECT_TRUE(tool.err().starts_with("espalier: error: --prefix and LOW cannot be given together"));
}

TEST_F(ScanCommand, Counts) {
  EXPECT_EQ(scan({"--count"}), "5\n");
  EXPECT_EQ(scan({"--count", "--json", "b", "c"}), "{\"items\":2}\n");
}

TEST_F(ScanCommand, PrintsWordsWithoutValues) {
  EXPECT_EQ(tool.run({"scan", "-f", "words", "-p", "bet"}), kOk);
  EXPECT_EQ(tool.out(), "bet\nbeta\n");
  EXPECT_EQ(tool.run({"scan", "-f", "words", "-p", "bet", "--number-lines"}), kOk);
  EXPECT_EQ(tool.out(), "bet\t3\nbeta\t1\n");
}

TEST_F(ScanCommand, PrintsJsonAndOtherEncodings) {
  EXPECT_TRUE(
      scan({"--json", "-l", "1"}).starts_with("{\"key\":\"a\",\"value\":\"1\",\"version\":"));
  EXPECT_EQ(scan({"--encoding", "hex", "-l", "2"}), "61\t31\n62\t32\n");
  EXPECT_EQ(scan({"--encoding", "raw", "-p", "b\t"}), "b\t\t2\n\n");
}

TEST_F(ScanCommand, StopsWhenNobodyReads) {
  // A stream that takes nothing: the scan must end, not go on to the last item.
  class Closed : public TextSink {
   public:
    bool take(std::string_view) override {
      ++calls;
      return false;
    }
    int calls = 0;
  } closed;
  GatheredText text(closed);
  text.text() = std::string(1 << 20, 'x');
  EXPECT_FALSE(text.pass_on());
  EXPECT_EQ(closed.calls, 1);
  EXPECT_TRUE(text.text().empty());
}

TEST_F(ScanCommand, ALimitIsANumberOfItems) {
  tool.input = "a\nb\nc\n";
  EXPECT_EQ(tool.run({"scan", "-f", "-", "--limit", "2"}), kOk) << tool.err();
  EXPECT_EQ(tool.out(), "a\nb\n");
  for (const std::string bad : {"-1", "0", "99999999999999999999", "abc", "1.5", ""}) {
    for (const auto& words : {std::vector<std::string>{"--limit", bad}, {"--limit=" + bad}}) {
      std::vector<std::string> line{"scan", "-f", "-"};
      line.insert(line.end(), words.begin(), words.end());
      EXPECT_EQ(tool.run(line), kUsage) << bad;
      EXPECT_EQ(tool.err(), "espalier: error: --limit: '" + bad +
                                "' is not a whole number from 1 to 18446744073709551615\n"
                                "  See espalier scan --help.\n");
    }
  }
}

}  // namespace
}  // namespace espalier::tools

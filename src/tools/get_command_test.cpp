// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tools/testing/tool_fixture.hpp"

namespace espalier::tools {
namespace {

using namespace std::string_literals;

class GetCommand : public ::testing::Test {
 protected:
  GetCommand() { tool.files.contents["p.csv"] = "apple,1.20\npear,0.80\n\"[x,y]\",{}\nempty,\n"; }
  Tool tool;
};

TEST_F(GetCommand, PrintsOneValueAlone) {
  EXPECT_EQ(tool.run({"get", "--file", "p.csv", "apple"}), kOk);
  EXPECT_EQ(tool.out(), "1.20\n");
  EXPECT_EQ(tool.err(), "");
  EXPECT_EQ(tool.run({"get", "-f", "p.csv", "-n", "apple"}), kOk);
  EXPECT_EQ(tool.out(), "1.20");
}

TEST_F(GetCommand, PrintsSeveralWithTheirKeys) {
  EXPECT_EQ(tool.run({"get", "-f", "p.csv", "pear", "apple"}), kOk);
  EXPECT_EQ(tool.out(), "pear\t0.80\napple\t1.20\n");
}

TEST_F(GetCommand, SaysWhatIsNotThereAndGoesOn) {
  EXPECT_EQ(tool.run({"get", "-f", "p.csv", "plum", "apple", "\x1b"}), kFailed);
  EXPECT_EQ(tool.out(), "apple\t1.20\n");
  EXPECT_EQ(tool.err(), "espalier: not found: plum\nespalier: not found: \\x1b\n");
}

TEST_F(GetCommand, TakesAnyBytesAsAKey) {
  EXPECT_EQ(tool.run({"get", "-f", "p.csv", "[x,y]"}), kOk);
  EXPECT_EQ(tool.out(), "{}\n");
  EXPECT_EQ(tool.run({"get", "-f", "p.csv", "{}"}), kFailed);
  EXPECT_EQ(tool.run({"get", "-f", "p.csv", "--", "-5"}), kFailed);
  EXPECT_EQ(tool.err(), "espalier: not found: -5\n");
  EXPECT_EQ(tool.run({"get", "-f", "p.csv", "scan"}), kFailed);
  EXPECT_EQ(tool.run({"get", "-f", "p.csv", "--encoding", "hex", "6170706c65"}), kOk);
  EXPECT_EQ(tool.out(), "312e3230\n");
}

TEST_F(GetCommand, AnEmptyValueIsFound) {
  EXPECT_EQ(tool.run({"get", "-f", "p.csv", "empty"}), kOk);
  EXPECT_EQ(tool.out(), "\n");
}

TEST_F(GetCommand, FindsTheFloor) {
  EXPECT_EQ(tool.run({"get", "-f", "p.csv", "--floor", "banana"}), kOk);
  EXPECT_EQ(tool.out(), "apple\t1.20\n");
  EXPECT_EQ(tool.run({"get", "-f", "p.csv", "--floor", "!"}), kFailed);
  EXPECT_EQ(tool.err(), "espalier: not found: no key at or below !\n");
}

TEST_F(GetCommand, PrintsJson) {
  EXPECT_EQ(tool.run({"get", "-f", "p.csv", "--json", "apple", "plum"}), kFailed);
  EXPECT_EQ(tool.out().substr(0, 41), "{\"key\":\"apple\",\"found\":true,\"value\":\"1.20");
  EXPECT_TRUE(tool.out().ends_with("{\"key\":\"plum\",\"found\":false}\n"));
}

TEST_F(GetCommand, EscapesOnATerminalOnly) {
  tool.files.contents["b.tsv"] = "k\t\\x1b[2J\n";
  EXPECT_EQ(tool.run({"get", "-f", "b.tsv", "k"}), kOk);
  EXPECT_EQ(tool.out(), "\x1b[2J\n");
  tool.out_is_terminal = true;
  EXPECT_EQ(tool.run({"get", "-f", "b.tsv", "k"}), kOk);
  EXPECT_EQ(tool.out(), "\\x1b[2J\n");
}

TEST_F(GetCommand, RefusesKeysThatNoMapCanHold) {
  EXPECT_EQ(tool.run({"get", "-f", "p.csv", ""}), kUsage);
  EXPECT_EQ(tool.err(), "espalier: error: the key has 0 bytes; a key has 1 to 460\n");
  EXPECT_EQ(tool.run({"get", "-f", "p.csv", std::string(461, 'k')}), kUsage);
}

TEST_F(GetCommand, NeedsDataAndAKey) {
  EXPECT_EQ(tool.run({"get", "apple"}), kUsage);
  EXPECT_EQ(tool.err(),
            "espalier: error: no data to work on\n"
            "  Give --file FILE, or --file - for standard input; or --at ADDRESS for a map on a "
            "node.\n");
  EXPECT_EQ(tool.run({"get", "-f", "p.csv"}), kUsage);
  EXPECT_EQ(tool.run({"get", "-f", "none.csv", "apple"}), kFailed);
  EXPECT_EQ(tool.err(), "espalier: error: cannot open 'none.csv': No such file or directory\n");
}

TEST_F(GetCommand, ReadsStandardInputAndSeveralFiles) {
  tool.input = "apple\t9\n";
  EXPECT_EQ(tool.run({"get", "-f", "p.csv", "-f", "-", "apple"}), kOk);
  EXPECT_EQ(tool.out(), "9\n");
}

}  // namespace
}  // namespace espalier::tools

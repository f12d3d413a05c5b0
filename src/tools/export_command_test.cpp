// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tools/testing/tool_fixture.hpp"

namespace espalier::tools {
namespace {

class ExportCommand : public ::testing::Test {
 protected:
  ExportCommand() { tool.files.contents["a.csv"] = "b,\"2,\"\na,1\nb,\"3,\"\n"; }
  Tool tool;
};

TEST_F(ExportCommand, WritesEveryFormat) {
  EXPECT_EQ(tool.run({"export", "a.csv"}), kOk);
  EXPECT_EQ(tool.out(), "a\t1\nb\t3,\n");
  EXPECT_EQ(tool.run({"export", "a.csv", "--to", "csv"}), kOk);
  EXPECT_EQ(tool.out(), "a,1\nb,\"3,\"\n");
  EXPECT_EQ(tool.run({"export", "a.csv", "--to", "lines"}), kOk);
  EXPECT_EQ(tool.out(), "a\nb\n");
  EXPECT_EQ(tool.run({"export", "a.csv", "--json"}), kOk);
  EXPECT_EQ(tool.out(), "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"b\",\"value\":\"3,\"}\n");
}

TEST_F(ExportCommand, WordsStayWords) {
  tool.input = "b\na\nb\n";
  EXPECT_EQ(tool.run({"export", "-"}), kOk);
  EXPECT_EQ(tool.out(), "a\nb\n");
}

TEST_F(ExportCommand, ReplacesAFileWhenItIsComplete) {
  EXPECT_EQ(tool.run({"export", "a.csv", "-o", "out.jsonl"}), kOk);
  EXPECT_EQ(tool.out(), "");
  EXPECT_EQ(tool.files.contents["out.jsonl"].substr(0, 11), "{\"key\":\"a\",");
  tool.files.contents["odd.csv"] = "\"two\nlines\",1\n";
  tool.files.contents["out"] = "old";
  EXPECT_EQ(tool.run({"export", "odd.csv", "--to", "lines", "-o", "out"}), kFailed);
  EXPECT_EQ(tool.files.contents["out"], "old");
  EXPECT_EQ(tool.err(),
            "espalier: error: key 'two\\nlines' does not fit into format lines: a key with a "
            "newline is not one line\n"
            "  The formats csv, tsv and json-lines hold every key.\n");
}

TEST_F(ExportCommand, LoadsWhatItWrote) {
  for (const std::string format : {"csv", "tsv", "json-lines"}) {
    EXPECT_EQ(tool.run({"export", "a.csv", "--to", format, "-o", "copy"}), kOk);
    EXPECT_EQ(tool.run({"export", "copy", "--format", format}), kOk);
    EXPECT_EQ(tool.out(), "a\t1\nb\t3,\n");
  }
}

}  // namespace
}  // namespace espalier::tools

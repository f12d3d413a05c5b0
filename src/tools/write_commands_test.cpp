// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tools/testing/tool_fixture.hpp"

namespace espalier::tools {
namespace {

using namespace std::string_literals;

class WriteCommands : public ::testing::Test {
 protected:
  WriteCommands() { file() = "pear,0.80\napple,1.20\n"; }
  std::string& file() { return tool.files.contents["p.csv"]; }
  Tool tool;
};

TEST_F(WriteCommands, PutInsertsAndReplaces) {
  EXPECT_EQ(tool.run({"put", "-f", "p.csv", "plum", "2,50"}), kOk);
  EXPECT_EQ(tool.out(), "inserted 1, 3 items in all\n");
  EXPECT_EQ(file(), "apple,1.20\npear,0.80\nplum,\"2,50\"\n");
  EXPECT_EQ(tool.run({"put", "-f", "p.csv", "plum", "3"}), kOk);
  EXPECT_EQ(tool.out(), "replaced 1, 3 items in all\n");
  EXPECT_EQ(file(), "apple,1.20\npear,0.80\nplum,3\n");
}

TEST_F(WriteCommands, PutTakesAnyBytes) {
  EXPECT_EQ(tool.run({"put", "-f", "p.csv", "[a,b]", ""}), kOk);
  EXPECT_EQ(tool.run({"put", "-f", "p.csv", "{}", "%%"}), kOk);
  EXPECT_EQ(tool.run({"put", "-f", "p.csv", "--", "-k", "-v"}), kOk);
  EXPECT_EQ(tool.run({"put", "-f", "p.csv", "--encoding", "escaped", "\\x00", "\\n"}), kOk);
  EXPECT_EQ(file(), "\0,\"\n\"\n-k,-v\n\"[a,b]\",\napple,1.20\npear,0.80\n{},%%\n"s);
}

TEST_F(WriteCommands, EraseRemovesAndSaysWhatWasNotThere) {
  EXPECT_EQ(tool.run({"erase", "-f", "p.csv", "plum", "apple"}), kFailed);
  EXPECT_EQ(tool.out(), "erased 1, 1 item in all\n");
  EXPECT_EQ(tool.err(), "espalier: not found: plum\n");
  EXPECT_EQ(file(), "pear,0.80\n");
  EXPECT_EQ(tool.run({"erase", "-f", "p.csv", "pear"}), kOk);
  EXPECT_EQ(file(), "");
}

TEST_F(WriteCommands, AFileThatNeedsNoChangeIsNotTouched) {
  const std::string before = file();
  EXPECT_EQ(tool.run({"erase", "-f", "p.csv", "plum"}), kFailed);
  EXPECT_EQ(file(), before);
}

TEST_F(WriteCommands, ADryRunWritesNothing) {
  const std::string before = file();
  EXPECT_EQ(tool.run({"put", "-f", "p.csv", "--dry-run", "plum", "1"}), kOk);
  EXPECT_EQ(tool.out(), "would have inserted 1, 3 items in all\n");
  EXPECT_EQ(file(), before);
}

TEST_F(WriteCommands, AMissingFileIsBegunOnlyOnRequest) {
  EXPECT_EQ(tool.run({"put", "-f", "new.tsv", "k", "v"}), kFailed);
  EXPECT_EQ(tool.err(),
            "espalier: error: there is no file 'new.tsv'\n  To begin one, give --create.\n");
  EXPECT_EQ(tool.run({"put", "-f", "new.tsv", "--create", "k", "v"}), kOk);
  EXPECT_EQ(tool.files.contents["new.tsv"], "k\tv\n");
  EXPECT_EQ(tool.run({"put", "-f", "new.jsonl", "--create", "k", "v"}), kOk);
  EXPECT_EQ(tool.files.contents["new.jsonl"], "{\"key\":\"k\",\"value\":\"v\"}\n");
}

TEST_F(WriteCommands, NothingIsLostUnasked) {
  tool.files.contents["wide.csv"] = "a,1,x\nb,2,y\n";
  tool.files.contents["bad.csv"] = "a,1\nb\n";
  tool.files.contents["words"] = "alpha\n";
  EXPECT_EQ(tool.run({"put", "-f", "wide.csv", "c", "3"}), kFailed);
  EXPECT_EQ(tool.files.contents["wide.csv"], "a,1,x\nb,2,y\n");
  EXPECT_EQ(tool.run({"put", "-f", "bad.csv", "c", "3"}), kFailed);
  EXPECT_EQ(tool.files.contents["bad.csv"], "a,1\nb\n");
  EXPECT_EQ(tool.run({"put", "-f", "bad.csv", "--drop-bad-lines", "c", "3"}), kOk);
  EXPECT_EQ(tool.files.contents["bad.csv"], "a,1\nc,3\n");
  EXPECT_EQ(tool.run({"put", "-f", "words", "beta", "2"}), kFailed);
  EXPECT_EQ(tool.run({"put", "-f", "words", "beta", ""}), kOk);
  EXPECT_EQ(tool.files.contents["words"], "alpha\nbeta\n");
  EXPECT_EQ(tool.run({"put", "-f", "words", "two\nlines", ""}), kFailed);
  EXPECT_EQ(tool.files.contents["words"], "alpha\nbeta\n");
  EXPECT_EQ(tool.run({"put", "-f", "words", "--number-lines", "gamma", ""}), kUsage);
}

TEST_F(WriteCommands, KeepsTheHeader) {
  tool.files.contents["h.csv"] = "fruit,price\nb,2\na,1\n";
  EXPECT_EQ(tool.run({"erase", "-f", "h.csv", "--header", "b"}), kOk);
  EXPECT_EQ(tool.files.contents["h.csv"], "fruit,price\na,1\n");
}

TEST_F(WriteCommands, WhatWouldBeReadBackDifferentlyIsRefused) {
  tool.files.contents["words"] = "alpha\n";
  EXPECT_EQ(tool.run({"put", "-f", "words", "{\"odd", ""}), kOk);  // not first: still lines
  tool.files.contents["words"] = "~\n";
  EXPECT_EQ(tool.run({"put", "-f", "words", "{\"odd", ""}), kFailed);
  EXPECT_EQ(tool.err(),
            "espalier: error: the file holds lines, but would look like json-lines with this "
            "change\n"
            "  Say what it is: --format lines.\n");
  EXPECT_EQ(tool.run({"put", "-f", "words", "--format", "lines", "{\"odd", ""}), kOk);
  tool.files.contents["empty.csv"] = "";
  EXPECT_EQ(tool.run({"put", "-f", "empty.csv", "--header", "a", "1"}), kFailed);
  EXPECT_EQ(tool.files.contents["empty.csv"], "");
}

TEST_F(WriteCommands, FiltersStandardInput) {
  tool.input = "b\t2\na\t1\n";
  EXPECT_EQ(tool.run({"erase", "-f", "-", "b"}), kOk);
  EXPECT_EQ(tool.out(), "a\t1\n");
  EXPECT_EQ(tool.err(), "erased 1, 1 item in all\n");
}

TEST_F(WriteCommands, DoesNotOverwriteWhatSomebodyElseWroteMeanwhile) {
  tool.files.before_commit = [this] { file() = "theirs,1\n"; };
  EXPECT_EQ(tool.run({"put", "-f", "p.csv", "plum", "1"}), kFailed);
  EXPECT_EQ(file(), "theirs,1\n");
  EXPECT_EQ(tool.err(),
            "espalier: error: 'p.csv' was changed by somebody else meanwhile; nothing was written\n"
            "  Run the command again.\n");
}

TEST_F(WriteCommands, SaysWhyAFileCannotBeWritten) {
  tool.files.unwritable.insert("p.csv");
  EXPECT_EQ(tool.run({"put", "-f", "p.csv", "plum", "1"}), kFailed);
  EXPECT_EQ(tool.err(), "espalier: error: cannot write 'p.csv': Permission denied\n");
}

TEST_F(WriteCommands, PrintJson) {
  EXPECT_EQ(tool.run({"put", "-f", "p.csv", "--json", "plum", "1"}), kOk);
  EXPECT_EQ(tool.out(),
            "{\"inserted\":1,\"replaced\":0,\"erased\":0,\"missing\":0,\"items\":3,"
            "\"written\":true}\n");
}

TEST_F(WriteCommands, TakeExactlyOneFileAndTheirOperands) {
  EXPECT_EQ(tool.run({"put", "-f", "p.csv", "-f", "q.csv", "a", "1"}), kUsage);
  EXPECT_EQ(tool.run({"put", "-f", "p.csv", "a"}), kUsage);
  EXPECT_EQ(tool.run({"put", "-f", "p.csv", "a", "b", "c"}), kUsage);
  EXPECT_EQ(tool.run({"put", "-f", "p.csv", "", "b"}), kUsage);
  EXPECT_EQ(tool.run({"erase", "-f", "p.csv"}), kUsage);
}

}  // namespace
}  // namespace espalier::tools

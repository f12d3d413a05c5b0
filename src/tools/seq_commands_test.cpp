// SPDX-License-Identifier: Apache-2.0
// The commands on sequencers, against a node in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/testing/node_fixture.hpp"

namespace espalier::tools {
namespace {

using ::testing::HasSubstr;

class SeqCommands : public NodeTool {
 protected:
  int seq(std::vector<std::string> words) {
    words.insert(words.begin(), "seq");
    words.insert(words.begin() + 2, {"--at", address});
    return tool.run(words);
  }
};

TEST_F(SeqCommands, FromTheFirstNumberToTheNextEpoch) {
  ASSERT_EQ(seq({"create", "orders", "--first", "1000"}), kOk) << tool.err();
  EXPECT_EQ(tool.out(), "made sequencer 'orders', from 1000\n");
  ASSERT_EQ(seq({"take", "orders"}), kOk) << tool.err();
  EXPECT_EQ(tool.out(), "1000\n");
  ASSERT_EQ(seq({"take", "orders", "16", "--json"}), kOk) << tool.err();
  EXPECT_EQ(tool.out(), "{\"first\":1001,\"count\":16,\"epoch\":1}\n");
  ASSERT_EQ(seq({"describe", "orders"}), kOk);
  EXPECT_EQ(tool.out(),
            "sequencer  orders\nepoch      1, from 1000\nnext       1017\n"
            "requests   2, by 2 adds\n");
  ASSERT_EQ(seq({"seal", "orders", "--epoch", "1"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("epoch      1, from 1000, sealed\n"));
  EXPECT_EQ(seq({"take", "orders"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("gives no numbers of this epoch any more; its epoch is 1"));
  EXPECT_THAT(tool.err(), HasSubstr("espalier seq advance"));
  ASSERT_EQ(seq({"advance", "orders", "--json"}), kOk) << tool.err();
  const auto object = nlohmann::json::parse(tool.out());
  EXPECT_EQ(object["sequencer"], "orders");
  EXPECT_EQ(object["epoch"], 2);
  EXPECT_EQ(object["sealed"], false);
  EXPECT_EQ(object["overwritten"], false);
  EXPECT_EQ(object["first"], 1017);
  EXPECT_EQ(seq({"take", "orders", "--epoch", "1"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("its epoch is 2"));
  ASSERT_EQ(seq({"advance", "orders", "--first", "5000"}), kOk);
  ASSERT_EQ(seq({"take", "orders", "--epoch", "3"}), kOk);
  EXPECT_EQ(tool.out(), "5000\n");
}

TEST_F(SeqCommands, ListAndDropAndSayWhatIsWrong) {
  ASSERT_EQ(seq({"create", "b"}), kOk);
  ASSERT_EQ(seq({"create", "a"}), kOk);
  ASSERT_EQ(seq({"list"}), kOk);
  EXPECT_EQ(tool.out(), "a\nb\n");
  ASSERT_EQ(tool.run({"list", "--at", address}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("sequencer a\n"));
  EXPECT_EQ(seq({"create", "a"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has a sequencer 'a' already"));
  EXPECT_EQ(seq({"take", "default"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("is a map"));
  EXPECT_EQ(seq({"take", "none"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has no sequencer 'none'"));
  EXPECT_EQ(seq({"take", "a", "0"}), kFailed);
  EXPECT_EQ(seq({"take", "a", "many"}), kUsage);
  EXPECT_EQ(seq({"take", "a", "--one-sided"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("One-sided access goes by shm: or roce: addresses"));
  ASSERT_EQ(seq({"drop", "a", "--json"}), kOk);
  EXPECT_EQ(tool.out(), "{\"sequencer\":\"a\",\"dropped\":true}\n");
  EXPECT_EQ(seq({"drop", "a"}), kFailed);
  EXPECT_EQ(tool.run({"seq", "list"}), kUsage);
  EXPECT_EQ(tool.run({"seq", "list", "--at", "embedded"}), kUsage);
}

}  // namespace
}  // namespace espalier::tools

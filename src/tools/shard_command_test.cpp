// SPDX-License-Identifier: Apache-2.0
// espalier shard, and the other commands on a map that lies on two nodes in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/testing/node_fixture.hpp"

namespace espalier::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ShardCommand : public NodeTool {
 protected:
  void SetUp() override {
    NodeTool::SetUp();
    node::Config second = config;
    second.node.socket = (second_folder_ / "second").string();
    auto started = node::Node::start(second);
    ASSERT_TRUE(started) << message(started.error());
    second_node_ = std::move(*started);
    second_ = "unix:" + second.node.socket;
  }
  int create(const std::string& border = "m") {
    return tool.run(
        {"shard", "create", "words", "--shard", address, "--shard", border + "=" + second_});
  }

  /// Runs a command of two words with the node's address.
  int run_under(std::vector<std::string> words) {
    words.insert(words.begin() + 2, {"--at", address});
    return tool.run(words);
  }

  base::TemporaryFolder second_folder_;
  std::unique_ptr<node::Node> second_node_;
  std::string second_;
};

TEST_F(ShardCommand, MakesAMapThatAllCommandsTakeAsOne) {
  ASSERT_EQ(create(), kOk) << tool.err();
  EXPECT_EQ(tool.out(), "made map 'words' in 2 shards\n");
  tool.files.contents["words.tsv"] = "apple\t1\npear\t2\nzebra\t3\nmango\t4\n";
  EXPECT_EQ(run({"load", "--map", "words", "words.tsv"}), kOk) << tool.err();
  for (const std::string& at : {address, second_}) {
    EXPECT_EQ(tool.run({"scan", "--at", at, "--map", "words", "--keys-only"}), kOk) << tool.err();
    EXPECT_EQ(tool.out(), "apple\nmango\npear\nzebra\n");
    EXPECT_EQ(tool.run({"get", "--at", at, "--map", "words", "zebra"}), kOk) << tool.err();
    EXPECT_EQ(tool.out(), "3\n");
    EXPECT_EQ(tool.run({"get", "--at", at, "--map", "words", "--floor", "lemon"}), kOk);
    EXPECT_EQ(tool.out(), "apple\t1\n");
    EXPECT_EQ(tool.run({"export", "--at", at, "--map", "words"}), kOk) << tool.err();
    EXPECT_EQ(tool.out(), "apple\t1\nmango\t4\npear\t2\nzebra\t3\n");
    EXPECT_EQ(tool.run({"check", "--at", at, "--map", "words"}), kOk) << tool.err();
  }
  EXPECT_EQ(run_under({"map", "drop", "words"}), kOk) << tool.err();
  EXPECT_EQ(tool.run({"map", "list", "--at", second_}), kOk);
  EXPECT_EQ(tool.out().find("words"), std::string::npos);
}

TEST_F(ShardCommand, AMapWhoseShardIsGoneHasNoNumbers) {
  ASSERT_EQ(create(), kOk) << tool.err();
  EXPECT_EQ(run({"put", "--map", "words", "apple", "1"}), kOk) << tool.err();
  EXPECT_EQ(run({"stats", "--map", "words"}), kOk) << tool.err();
  EXPECT_THAT(tool.out(), HasSubstr("items       1\n"));
  second_node_.reset();
  EXPECT_EQ(run({"stats", "--map", "words"}), kFailed);
  EXPECT_EQ(tool.out(), "");
  EXPECT_THAT(tool.err(), HasSubstr("cannot ask for the numbers of map 'words': "));
  EXPECT_THAT(tool.err(), HasSubstr("shard 1"));
  // A put to the reachable shard does not report a count of 0 items.
  EXPECT_EQ(run({"put", "--map", "words", "apple", "2"}), kFailed);
  EXPECT_EQ(tool.out().find("0 items"), std::string::npos) << tool.out();
}

TEST_F(ShardCommand, StatusTellsEachShard) {
  ASSERT_EQ(create(), kOk) << tool.err();
  EXPECT_EQ(run({"put", "--map", "words", "zebra", "1"}), kOk) << tool.err();
  EXPECT_EQ(run_under({"shard", "status", "words"}), kOk) << tool.err();
  EXPECT_THAT(tool.out(), StartsWith("shard  from  at "));
  EXPECT_THAT(tool.out(), HasSubstr("    1  m     " + second_));
  EXPECT_EQ(run_under({"shard", "status", "--json", "words"}), kOk) << tool.err();
  std::istringstream lines(tool.out());
  std::string line;
  std::getline(lines, line);
  auto shard = nlohmann::json::parse(line);
  EXPECT_EQ(shard["low"], "");
  EXPECT_EQ(shard["high"], "m");
  EXPECT_EQ(shard["at"], address);
  EXPECT_EQ(shard["items"], 0);
  std::getline(lines, line);
  shard = nlohmann::json::parse(line);
  EXPECT_EQ(shard["shard"], 1);
  EXPECT_EQ(shard["items"], 1);
  EXPECT_EQ(shard["agrees"], true);
  EXPECT_GT(shard["memory_bytes"], 0);
  // A node that is gone.
  second_node_.reset();
  EXPECT_EQ(run_under({"shard", "status", "words"}), kFailed);
  EXPECT_THAT(tool.out(), HasSubstr("unreachable"));
  EXPECT_EQ(run_under({"shard", "status", "--json", "words"}), kFailed);
  EXPECT_THAT(tool.out(), HasSubstr("\"error\":\"system\""));
  EXPECT_EQ(run({"scan", "--map", "words"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("shard 1"));
  // One that has another map of this name.
  EXPECT_EQ(run_under({"map", "create", "whole"}), kOk);
  EXPECT_EQ(run_under({"shard", "status", "whole"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("alone"));
  EXPECT_EQ(run_under({"shard", "status", "nothing"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has no map 'nothing'"));
}

TEST_F(ShardCommand, MakesAllShardsOrNone) {
  EXPECT_EQ(tool.run({"map", "create", "--at", second_, "words"}), kOk);
  EXPECT_EQ(create(), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("cannot make shard 1 of map 'words' at " + second_ +
                                    ": it has that name already."));
  EXPECT_EQ(run_under({"map", "list"}), kOk);
  EXPECT_EQ(tool.out().find("words"), std::string::npos);
  EXPECT_EQ(tool.run({"map", "drop", "--at", second_, "words"}), kOk);
  EXPECT_EQ(tool.run({"shard", "create", "words", "--shard", address, "--shard",
                      "m=unix:" + (second_folder_ / "nowhere").string()}),
            kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("None of the shards is there now."));
  EXPECT_EQ(create(""), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("borders ascend"));
  EXPECT_EQ(tool.run({"shard", "create", "words", "--shard", address, "--shard", second_}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("has no border"));
  EXPECT_EQ(tool.run({"shard", "create", "words", "--shard", "nonsense"}), kUsage);
  EXPECT_EQ(tool.run({"shard", "create", "words"}), kUsage);
  EXPECT_EQ(tool.run({"shard", "create", "words", "--shard", address, "--shard", "6D=" + second_,
                      "--encoding", "hex", "--node-bytes", "4096"}),
            kOk)
      << tool.err();
  EXPECT_EQ(run_under({"shard", "status", "--json", "words"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("\"low\":\"m\""));
}

}  // namespace
}  // namespace espalier::tools

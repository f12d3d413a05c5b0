// SPDX-License-Identifier: Apache-2.0
// Chains whose members do not run; tests/commands/run_chain_test.cpp has those that run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/temporary_folder.hpp"
#include "chain/file_membership.hpp"
#include "node/chain_folder.hpp"
#include "tools/testing/tool_fixture.hpp"

namespace espalier::tools {
namespace {

using testing::HasSubstr;

class ChainCommand : public testing::Test {
 protected:
  std::string path(const std::string& name) { return (folder_ / name).string(); }
  std::string member(const std::string& name) { return name + "=shm:" + path(name); }
  base::TemporaryFolder folder_;
  Tool tool_;
};

TEST_F(ChainCommand, StatusFailsWhereNobodyServesIfThatIsAsked) {
  ASSERT_EQ(tool_.run({"chain", "create", "--members", path("c"), member("a"), member("b")}), kOk)
      << tool_.err();
  EXPECT_EQ(tool_.run({"chain", "status", "--members", path("c")}), kOk);
  EXPECT_THAT(tool_.out(), HasSubstr("state unreachable"));
  EXPECT_EQ(tool_.run({"chain", "status", "--members", path("c"), "--serves"}), kFailed);
  EXPECT_THAT(tool_.err(), HasSubstr("no member of the chain serves"));
  EXPECT_EQ(tool_.run({"chain", "status", "--members", path("c"), "--member", "b"}), kOk);
  EXPECT_EQ(tool_.run({"chain", "status", "--members", path("c"), "--member", "c"}), kFailed);
  EXPECT_THAT(tool_.err(), HasSubstr("is no member of the chain"));
}

// So a node may ask for both whenever it starts (dist/kubernetes).
TEST_F(ChainCommand, WhatIsThereIsNeitherMadeNorAddedAgain) {
  ASSERT_EQ(tool_.run({"chain", "create", "--members", path("c"), member("a")}), kOk);
  EXPECT_EQ(tool_.run({"chain", "create", "--members", path("c"), member("a")}), kFailed);
  EXPECT_THAT(tool_.err(), HasSubstr("already"));
  EXPECT_EQ(tool_.run({"chain", "add", "--members", path("c"), member("a")}), kFailed);
  EXPECT_EQ(tool_.run({"chain", "add", "--members", path("c"), member("b")}), kOk);
  EXPECT_EQ(tool_.run({"chain", "add", "--members", path("c"), member("b")}), kFailed);
  EXPECT_EQ(tool_.run({"chain", "status", "--members", path("c")}), kOk);
  EXPECT_THAT(tool_.out(), HasSubstr("epoch 2,"));
}

// Members 1 and 2 were there; the second was left out, and the first is gone.
class ChainRestore : public ChainCommand {
 protected:
  void SetUp() override {
    ASSERT_EQ(tool_.run({"chain", "create", "--members", path("c"), member("a"), member("b")}),
              kOk);
    chain_ = view().chain;
    for (std::uint32_t number = 1; number <= 2; ++number) {
      std::filesystem::create_directory(path(std::to_string(number)));
      ASSERT_TRUE(node::write_chain_folder(path(std::to_string(number)), {chain_, number}));
    }
    ASSERT_EQ(tool_.run({"chain", "remove", "--members", path("c"), "b"}), kOk);
  }
  chain::View view() { return chain::FileMembership(path("c")).read().value().value(); }
  int restore(const std::string& data, bool accept_loss) {
    std::vector<std::string> words = {"chain",  "restore", "--members", path("c"),
                                      "--data", data,      "b=shm:new"};
    if (accept_loss) words.emplace_back("--accept-loss");
    return tool_.run(words);
  }
  std::uint64_t chain_ = 0;
};

TEST_F(ChainRestore, GoesOnWithWhoWasLeftOutOnceTheLossIsAccepted) {
  EXPECT_EQ(restore(path("2"), false), kFailed);
  EXPECT_THAT(tool_.err(), HasSubstr("is lost with its members, a by name"));
  EXPECT_EQ(view().epoch, 2u);
  EXPECT_EQ(restore(path("2"), true), kOk) << tool_.err();
  const chain::View restored = view();
  EXPECT_EQ(restored.epoch, 3u);
  EXPECT_EQ(restored.members, (std::vector<chain::MemberEntry>{{2, "b", "shm:new"}}));
  EXPECT_TRUE(restored.whole);
  // The next one that joins has a number that no member ever had.
  EXPECT_EQ(restored.with_joining("c", "shm:c").joining->number, 3u);
}

TEST_F(ChainRestore, OnlyTheFolderOfOneThatWasLeftOutIsTaken) {
  EXPECT_EQ(restore(path("1"), true), kFailed);
  EXPECT_THAT(tool_.err(), HasSubstr("is that of a member"));
  EXPECT_EQ(restore(path("nothing"), true), kFailed);
  EXPECT_THAT(tool_.err(), HasSubstr("is of no member of this chain"));
  ASSERT_TRUE(node::write_chain_folder(path("2"), {chain_ + 2, 2}));
  EXPECT_EQ(restore(path("2"), true), kFailed);
  EXPECT_THAT(tool_.err(), HasSubstr("is of no member of this chain"));
  ASSERT_TRUE(node::write_chain_folder(path("2"), {chain_, 3, true}));
  EXPECT_EQ(restore(path("2"), true), kFailed);
  EXPECT_THAT(tool_.err(), HasSubstr("had not joined yet"));
  EXPECT_EQ(view().epoch, 2u);
}

// It was started meanwhile, and asked a chain without a live member to let it join.
TEST_F(ChainRestore, AFolderThatWasToJoinIsWhatItWasUntilItHasACheckpoint) {
  ASSERT_TRUE(node::keep_chain_folder_before(path("2"), {chain_, 2}));
  ASSERT_TRUE(node::write_chain_folder(path("2"), {chain_, 3, true}));
  EXPECT_EQ(restore(path("2"), true), kOk) << tool_.err();
  EXPECT_EQ(view().members, (std::vector<chain::MemberEntry>{{2, "b", "shm:new"}}));
  EXPECT_EQ(node::read_chain_folder(path("2")).value(), (node::ChainFolder{chain_, 2}));
  EXPECT_EQ(node::read_chain_folder_before(path("2")).value(), std::nullopt);
}

}  // namespace
}  // namespace espalier::tools

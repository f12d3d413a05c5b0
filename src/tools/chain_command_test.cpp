// SPDX-License-Identifier: Apache-2.0
// Chains whose members nobody runs; tests/commands/run_chain_test.cpp has those that run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/temporary_folder.hpp"
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

}  // namespace
}  // namespace espalier::tools

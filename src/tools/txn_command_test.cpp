// SPDX-License-Identifier: Apache-2.0
// The command for transactions, against a node in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "espalier/hash_map.hpp"
#include "tools/testing/node_fixture.hpp"

namespace espalier::tools {
namespace {

using ::testing::HasSubstr;

class TxnCommand : public NodeTool {
 protected:
  TxnCommand() { config.node.shared_clock = true; }
  int txn(const std::string& steps) {
    tool.input = steps;
    return tool.run({"txn", "--at", address});
  }
};

TEST_F(TxnCommand, ReadsAndWritesSeveralMapsAtOnce) {
  auto store = Store::connect(address);
  ASSERT_TRUE(store);
  ASSERT_TRUE(store->create_hash_map("accounts"));
  ASSERT_EQ(txn("# the first of both\nput\taccounts\tann\t70\nput\tdefault\tann\ta\\tb\n\n"
                "get\taccounts\tann\n"),
            kOk)
      << tool.err();
  EXPECT_EQ(tool.out(), "accounts\tann\n");
  ASSERT_EQ(txn("only_if_value\taccounts\tann\t70\nget\tdefault\tann\nget\taccounts\tann\n"
                "put\taccounts\tann\t60\n"),
            kOk)
      << tool.err();
  EXPECT_EQ(tool.out(), "default\tann\ta\\tb\naccounts\tann\t70\n");
  EXPECT_EQ(txn("put\tdefault\tann\tx\n\nonly_if_value\taccounts\tann\t70\n"), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("the condition of line 3 does not hold"));
  ASSERT_EQ(tool.run({"get", "--at", address, "ann"}), kOk);
  EXPECT_EQ(tool.out(), "a\tb\n");
}

TEST_F(TxnCommand, SaysWhatIsWrong) {
  EXPECT_EQ(txn(""), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("there are no steps"));
  EXPECT_EQ(txn("get\tdefault\tk\nmove\ta\tb\n"), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("line 2: there is no step 'move'"));
  EXPECT_EQ(txn("put\tdefault\tk\n"), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("a map, a key and a value"));
  EXPECT_EQ(txn("get\tdefault\tk\nget\tnone\tk\n"), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has no map 'none'"));
  EXPECT_EQ(tool.run({"txn"}), kUsage);
}

}  // namespace
}  // namespace espalier::tools

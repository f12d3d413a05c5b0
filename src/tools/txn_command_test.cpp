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

TEST_F(TxnCommand, ANumberOfAClientIsDoneOnce) {
  ASSERT_EQ(tool.run({"txn", "--at", address, "--new-client"}), kOk) << tool.err();
  const std::string id = tool.out().substr(0, 16);
  ASSERT_EQ(tool.out(), id + "\n");
  const auto numbered = [&](const std::string& number, const std::string& steps) {
    tool.input = steps;
    return tool.run({"txn", "--at", address, "--client", id, "--number", number});
  };
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(numbered("1", "get\tdefault\tk\nput\tdefault\tk\t1\n"), kOk) << tool.err();
    EXPECT_EQ(tool.out(), "default\tk\n") << "what was read the first time";
  }
  EXPECT_EQ(numbered("1", "put\tdefault\tk\t2\n"), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("another transaction of the client"));
  ASSERT_EQ(numbered("2", "get\tdefault\tk\n"), kOk) << tool.err();
  EXPECT_EQ(tool.out(), "default\tk\t1\n");
  EXPECT_EQ(numbered("1", "get\tdefault\tk\nput\tdefault\tk\t1\n"), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has acknowledged this number"));
  EXPECT_EQ(tool.run({"txn", "--at", address, "--client", id}), kUsage);
  EXPECT_EQ(tool.run({"txn", "--at", address, "--client", "x", "--number", "1"}), kUsage);
  tool.input = "put\tdefault\tk\t2\n";
  EXPECT_EQ(tool.run({"txn", "--at", address, "--client", "1", "--number", "1"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("does not know this client"));
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

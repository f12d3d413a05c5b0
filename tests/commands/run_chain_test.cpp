// SPDX-License-Identifier: Apache-2.0
// ./run chain with tiny sizes (tests/support/run_script.hpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <regex>
#include <string>

#include "tests/support/run_script.hpp"

namespace espalier {
namespace {

using ::testing::HasSubstr;

class RunChainSlow : public test::RunScript {
 protected:
  RunChainSlow() : RunScript(ESPALIER_PROGRAM, ESPALIER_SOURCE_DIR) {}
};

TEST_F(RunChainSlow, TheCountIsWhatWasAcknowledgedThoughEachHeadIsKilled) {
  const std::string port = std::to_string(20000 + ::getpid() % 10000 * 2);
  ASSERT_EQ(run("ESPALIER_RUN_FENCE_MS=500 ESPALIER_RUN_PUTS=10 ESPALIER_RUN_PORT=" + port +
                " scripts/run-chain.sh"),
            0)
      << output_;
  EXPECT_THAT(output_, HasSubstr("\nclients find the chain by chain://etcd://127.0.0.1:" + port));
  EXPECT_THAT(output_, HasSubstr("a joins behind c: "));
  EXPECT_THAT(output_, HasSubstr("\n  role tail\n"));
  const std::regex pause("\nthe client's longest pause of all: [1-9][0-9]* ms\n");
  EXPECT_TRUE(std::regex_search(output_, pause)) << output_;
}

TEST_F(RunChainSlow, NumbersThatAreNoneAreRefused) {
  for (const char* puts : {"0", "-1", "many", "1e6", "1;ls"}) {
    EXPECT_EQ(run("ESPALIER_RUN_PUTS='" + std::string(puts) + "' scripts/run-chain.sh"), 2);
    EXPECT_THAT(output_, HasSubstr("is no number from 1 to 999999"));
  }
}

}  // namespace
}  // namespace espalier

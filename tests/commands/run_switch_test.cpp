// SPDX-License-Identifier: Apache-2.0
// ./run switch with tiny sizes (tests/support/run_script.hpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "tests/support/run_script.hpp"

namespace espalier {
namespace {

using ::testing::HasSubstr;

class RunSwitchSlow : public test::RunScript {
 protected:
  RunSwitchSlow() : RunScript(ESPALIER_PROGRAM, ESPALIER_SOURCE_DIR) {}
};

TEST_F(RunSwitchSlow, AGetThroughTheSwitchTakesOneReadAndAllStays) {
  ASSERT_EQ(run("ESPALIER_RUN_KEYS=20000 ESPALIER_RUN_OPS=200 scripts/run-switch.sh"), 0)
      << output_;
  EXPECT_THAT(output_, HasSubstr("\npair000000000042\n"));
  EXPECT_TRUE(std::regex_search(output_, std::regex("\nin-network +1\\.00 "))) << output_;
  const std::regex several("\none-sided +([3-9]|1[0-9])\\.[0-9]+ ");
  EXPECT_TRUE(std::regex_search(output_, several)) << output_;
  EXPECT_TRUE(std::regex_search(output_, std::regex("\nredirected +[1-9][0-9,]+\n"))) << output_;
  EXPECT_THAT(output_, HasSubstr("\nnode_reads_resolved "));
  EXPECT_THAT(output_, HasSubstr("\nnode_held_bytes "));
  EXPECT_EQ(run_all(offered()), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("pair000000000099\n"));
  EXPECT_THAT(output_, HasSubstr("\nnew\n"));
}

TEST_F(RunSwitchSlow, NumbersThatAreNoneAreRefused) {
  for (const char* keys : {"0", "99", "-1", "many", "1e6", "1;ls"}) {
    EXPECT_EQ(run("ESPALIER_RUN_KEYS='" + std::string(keys) + "' scripts/run-switch.sh"), 2);
    EXPECT_THAT(output_, HasSubstr("is no number from 100 to "));
  }
}

}  // namespace
}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// ./run tables with tiny sizes: the script runs with the programs of this build, in a copy of the
// project's folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "tests/support/run_script.hpp"

namespace espalier {
namespace {

using ::testing::HasSubstr;

class RunTablesSlow : public test::RunScript {
 protected:
  RunTablesSlow() : RunScript(ESPALIER_PROGRAM, ESPALIER_SOURCE_DIR) {}
};

TEST_F(RunTablesSlow, EachQueryIsAnsweredInBothWaysAndTheNodeStays) {
  ASSERT_EQ(run("ESPALIER_RUN_SCALE=0.001 scripts/run-tables.sh"), 0) << output_;
  // A line of the table at the end for each query, with time and bytes in both ways.
  const std::string cells = R"( +[0-9.]+ [mu]?s +[0-9.]+ (B|[KM]iB))";
  for (const char* query : {"Q6: one sum of a year", "Q1: sums by group", "LIKE over comments",
                            "distinct, two columns", "rows of an encrypted table"}) {
    EXPECT_TRUE(std::regex_search(output_, std::regex("\n" + std::string(query) + cells + cells)))
        << query << '\n'
        << output_;
  }
  EXPECT_THAT(output_, HasSubstr("\nrevenue\n"));
  EXPECT_THAT(output_, HasSubstr("... 28 rows\n"));
  EXPECT_THAT(output_, HasSubstr("encrypted ones decrypted by the client"));
  EXPECT_THAT(output_, HasSubstr("Where to go from here:"));
  // Every command that it names does what it should, but for the one of a whole screen.
  std::string commands = offered();
  commands.erase(commands.rfind('\n'));
  EXPECT_EQ(run_all(commands), 0) << commands << '\n' << output_;
  EXPECT_THAT(output_, HasSubstr("l_shipmode\tcount\n"));
  EXPECT_THAT(output_, HasSubstr("pack: rows of "));
}

TEST_F(RunTablesSlow, ScalesThatAreNoneAreRefused) {
  for (const char* scale : {"0", "0.00001", "101", "1e9", "-1", "one", "1;ls"}) {
    EXPECT_EQ(run("ESPALIER_RUN_SCALE='" + std::string(scale) + "' scripts/run-tables.sh"), 2);
    EXPECT_THAT(output_, HasSubstr("is no scale from 0.0001 to 100"));
  }
  EXPECT_EQ(run("'" ESPALIER_SOURCE_DIR "/run' chairs"), 2);
  EXPECT_THAT(output_, HasSubstr("usage: ./run [tables | switch | chain]"));
  EXPECT_EQ(run("build/release/bin/lineitem 0.5x"), 2);
  EXPECT_THAT(output_, HasSubstr("usage: lineitem"));
}

}  // namespace
}  // namespace espalier

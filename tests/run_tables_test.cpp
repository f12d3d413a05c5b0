// SPDX-License-Identifier: Apache-2.0
// What ./run tables shows, tiny: the script runs with the programs of this build, in a folder that
// looks like the project's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "base/temporary_folder.hpp"

namespace espalier {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RunTablesSlow : public ::testing::Test {
 protected:
  RunTablesSlow() {
    fs::create_directories(folder_ / "build/release");
    fs::create_directory_symlink(fs::path(ESPALIER_PROGRAM).parent_path(),
                                 folder_ / "build/release/bin");
    fs::create_directory_symlink(fs::path(ESPALIER_SOURCE_DIR) / "scripts", folder_ / "scripts");
  }
  // The script leaves a node running, as it should, but not behind this test.
  ~RunTablesSlow() override {
    if (const pid_t node = node_process(); node > 0) ::kill(node, SIGKILL);
  }

  /// Runs a shell command in the folder; what it says is in output_. Returns its exit code.
  int run(const std::string& command) {
    const std::string line = "cd '" + folder_.string() + "' && { " + command + "; } >output 2>&1";
    const int status = std::system(line.c_str());  // NOLINT: the test's own words
    output_ = read("output");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream in(folder_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  [[nodiscard]] pid_t node_process() const {
    const std::string text = read("build/run/node.pid");
    return text.empty() ? -1 : std::stoi(text);
  }

  base::TemporaryFolder folder_;
  std::string output_;
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
  EXPECT_THAT(output_, HasSubstr("Where to go from here:"));
  // Every command that it names does what it should, but for the one of a whole screen.
  const std::size_t begin = output_.find("Try it:\n") + 8;
  std::string commands = "set -e; " + output_.substr(begin, output_.find("\n\n", begin) - begin);
  commands.erase(commands.rfind('\n'));
  EXPECT_EQ(run("bash -c '" + std::regex_replace(commands, std::regex("'"), "'\\''") + "'"), 0)
      << commands << '\n'
      << output_;
  EXPECT_THAT(output_, HasSubstr("l_shipmode\tcount\n"));
  EXPECT_THAT(output_, HasSubstr("pack: rows of "));
}

TEST_F(RunTablesSlow, ScalesThatAreNoneAreRefused) {
  for (const char* scale : {"0", "0.00001", "101", "1e9", "-1", "one", "1;ls"}) {
    EXPECT_EQ(run("ESPALIER_RUN_SCALE='" + std::string(scale) + "' scripts/run-tables.sh"), 2);
    EXPECT_THAT(output_, HasSubstr("is no scale from 0.0001 to 100"));
  }
  EXPECT_EQ(run("'" ESPALIER_SOURCE_DIR "/run' chairs"), 2);
  EXPECT_THAT(output_, HasSubstr("usage: ./run [tables]"));
  EXPECT_EQ(run("build/release/bin/lineitem 0.5x"), 2);
  EXPECT_THAT(output_, HasSubstr("usage: lineitem"));
}

}  // namespace
}  // namespace espalier

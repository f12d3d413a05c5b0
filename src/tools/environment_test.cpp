// SPDX-License-Identifier: Apache-2.0
#include "tools/environment.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <sstream>

#include "tools/testing/memory_files.hpp"

namespace espalier::tools {
namespace {

TEST(Environment, ErrorsOfTheSystemSpeakItsWords) {
  EXPECT_EQ(reason({Code::system, 0, ENOENT}), "No such file or directory");
  EXPECT_EQ(reason({Code::not_found, 0, 0}), message({Code::not_found, 0, 0}));
}

TEST(Environment, FailuresPrintWhatAndHintAndCarryTheExitCode) {
  MemorySource input("");
  MemoryFiles files;
  std::ostringstream out;
  std::ostringstream err;
  Environment environment{
      .input = input, .out = out, .err = err, .files = files, .now_ns = [] { return 0; }};
  const Outcome<int> wrong = misused("one thing", "Do another.");
  EXPECT_EQ(print_failure(environment, wrong.error()), kUsage);
  const Outcome<int> broken = failed("it broke");
  EXPECT_EQ(print_failure(environment, broken.error()), kFailed);
  EXPECT_EQ(err.str(),
            "espalier: error: one thing\n  Do another.\n"
            "espalier: error: it broke\n");
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace espalier::tools

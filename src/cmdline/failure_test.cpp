// SPDX-License-Identifier: Apache-2.0
#include "cmdline/failure.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace espalier::cmdline {
namespace {

TEST(Failure, PrintsWhatAndHintAndCarriesTheExitCode) {
  std::ostringstream err;
  const Outcome<int> wrong = misused("one thing", "Do another.");
  EXPECT_EQ(print_failure({"program", err}, wrong.error()), kUsage);
  const Outcome<int> broken = failed("it broke");
  EXPECT_EQ(print_failure({"program", err}, broken.error()), kFailed);
  EXPECT_EQ(err.str(),
            "program: error: one thing\n  Do another.\n"
            "program: error: it broke\n");
}

TEST(Failure, ErrorsAreRedAndNotesYellowWhereColourIsWanted) {
  std::ostringstream err;
  print_note({"program", err, true}, "error", "it broke");
  print_note({"program", err, true}, "note", "it bends");
  EXPECT_EQ(err.str(),
            "program: \x1b[1;31merror:\x1b[0m it broke\n"
            "program: \x1b[1;33mnote:\x1b[0m it bends\n");
}

}  // namespace
}  // namespace espalier::cmdline

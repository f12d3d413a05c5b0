// SPDX-License-Identifier: Apache-2.0
#include "cmdline/parse.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <sstream>

namespace espalier::cmdline {
namespace {

using namespace std::string_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Parse, ProtectedArgumentsComeBack) {
  for (const std::string argument : {"", "[a,b]", "{}", "%%", "plain", "-f", "[", "a]"}) {
    const auto words = protect({argument});
    ASSERT_EQ(words.size(), 1U);
    EXPECT_EQ(unprotect(words[0]), argument);
  }
}

TEST(Parse, ValuesBehindAnEqualsSignAreProtectedToo) {
  EXPECT_THAT(protect({"--prefix=", "--prefix={}", "--limit=3"}),
              ElementsAre("--prefix", "\0"s, "--prefix", "{}\0"s, "--limit=3"));
  EXPECT_THAT(protect({"--", "--prefix="}), ElementsAre("--", "--prefix="));
}

/// A program with one command, and what it printed last.
class Greeter {
 public:
  std::optional<int> parse(const std::vector<std::string>& arguments) {
    CLI::App app("Says hello", "greeter");
    CLI::App& greet = *app.add_subcommand("greet", "Say hello");
    greet.add_option("--times", times, "how often");
    greet.add_flag("--loud", loud, "in large letters");
    out.str("");
    err.str("");
    return cmdline::parse(app, arguments, out, {"greeter", err});
  }

  int times = 1;
  bool loud = false;
  std::ostringstream out;
  std::ostringstream err;
};

TEST(Parse, ARightLineLeavesTheRestToTheCommand) {
  Greeter greeter;
  EXPECT_EQ(greeter.parse({"greet", "--times", "3"}), std::nullopt);
  EXPECT_EQ(greeter.times, 3);
  EXPECT_EQ(greeter.out.str() + greeter.err.str(), "");
}

TEST(Parse, ASwitchTakesNoOtherValue) {
  Greeter greeter;
  EXPECT_EQ(greeter.parse({"greet", "--loud=yes"}), std::nullopt);
  EXPECT_TRUE(greeter.loud);
  EXPECT_EQ(greeter.parse({"greet", "--loud=abc"}), kUsage);
  EXPECT_THAT(greeter.err.str(), HasSubstr("abc"));
  EXPECT_THAT(greeter.err.str(), HasSubstr("takes no value, or true or false"));
}

TEST(Parse, HelpIsPrinted) {
  Greeter greeter;
  EXPECT_EQ(greeter.parse({"greet", "--help"}), kOk);
  const std::string help = greeter.out.str();
  EXPECT_THAT(help, HasSubstr("--times"));
  EXPECT_EQ(greeter.parse({"help", "greet"}), kOk);
  EXPECT_EQ(greeter.out.str(), help);
}

TEST(Parse, MistakesAreToldInTheNameOfTheProgram) {
  Greeter greeter;
  EXPECT_EQ(greeter.parse({}), kUsage);
  EXPECT_EQ(greeter.err.str(), "greeter: error: which command?\n  See greeter --help.\n");
  EXPECT_EQ(greeter.parse({"gret"}), kUsage);
  EXPECT_EQ(greeter.err.str(),
            "greeter: error: there is no command 'gret'\n"
            "  Did you mean greet? See greeter --help.\n");
  EXPECT_EQ(greeter.parse({"greet", "--tiems", "3"}), kUsage);
  EXPECT_EQ(greeter.err.str(),
            "greeter: error: unknown option '--tiems'\n"
            "  Did you mean --times? See greeter greet --help.\n");
  EXPECT_EQ(greeter.parse({"greet", "x\x1b"}), kUsage);
  EXPECT_THAT(greeter.err.str(), HasSubstr("no place for argument 'x\\x1b'"));
}

}  // namespace
}  // namespace espalier::cmdline

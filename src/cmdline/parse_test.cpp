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

TEST(Parse, OptionsGetTheirTextAsItWasTyped) {
  for (const std::string text : {"", "[a,b]", "[]", "[", "{}", "{a}", "%%", "plain"}) {
    std::string bound = "before";
    std::string called = "before";
    std::string checked = "before";
    std::vector<std::string> list;
    CLI::App app("Keeps words", "keeper");
    CLI::App& keep = *app.add_subcommand("keep", "Keep words")->add_subcommand("all", "All");
    keep.add_option("--bound", bound)->check([&](const std::string& given) {
      checked = given;
      return std::string();
    });
    keep.add_option_function<std::string>("NAME", [&](const std::string& to) { called = to; });
    keep.add_option("WORD", list);
    std::ostringstream out;
    const Messages messages{"keeper", out};
    EXPECT_EQ(cmdline::parse(app, std::vector{"keep"s, "all"s, "--bound"s, text, text, text, text},
                             out, messages),
              std::nullopt)
        << out.str();
    EXPECT_EQ(bound, text);
    EXPECT_EQ(called, text);
    EXPECT_EQ(checked, text);
    EXPECT_THAT(list, ElementsAre(text, text));
  }
}

TEST(Parse, ALoneWordInBracesIsOneOfAList) {
  for (const std::string text : {"", "[a,b]", "{}", "%%"}) {
    std::vector<std::string> list;
    CLI::App app("Keeps words", "keeper");
    app.add_subcommand("keep", "Keep words")->add_option("--word", list);
    std::ostringstream out;
    const std::string joined = "--word=" + text;
    EXPECT_EQ(cmdline::parse(app, std::vector{"keep"s, joined}, out, {"keeper", out}), std::nullopt)
        << out.str();
    EXPECT_THAT(list, ElementsAre(text));
  }
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

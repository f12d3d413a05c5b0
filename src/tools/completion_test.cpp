// SPDX-License-Identifier: Apache-2.0
#include "cmdline/completion.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <fstream>
#include <regex>

#include "base/temporary_folder.hpp"
#include "tools/testing/tool_fixture.hpp"

namespace espalier::tools {
namespace {

using cmdline::command_words;
using cmdline::CommandWords;
using cmdline::OptionWords;
using ::testing::HasSubstr;

std::string script(const std::string& shell) {
  Tool tool;
  EXPECT_EQ(tool.run({"completion", shell}), kOk);
  return tool.out();
}

/// Names of commands and options as the help prints them: another way to them than the parser's
/// tree, which the scripts are made from.
std::vector<std::string> words_of_help(const std::vector<std::string>& path) {
  Tool tool;
  std::vector<std::string> words = path;
  words.emplace_back("--help");
  EXPECT_EQ(tool.run(words), kOk);
  static const std::regex entry(R"(\n  (?:(-\w),)?(--[a-z-]+|[a-z]+)\b)");
  const std::string help = tool.out().substr(0, tool.out().find("Examples:"));
  std::vector<std::string> found;
  for (std::sregex_iterator at(help.begin(), help.end(), entry), end; at != end; ++at) {
    if ((*at)[1].matched) found.push_back((*at)[1].str());
    found.push_back((*at)[2].str());
  }
  return found;
}

/// A folder for a script, and a bash that completes with it.
class Completion : public ::testing::Test {
 protected:
  Completion() {
    std::ofstream(folder / "script") << script("bash");
    std::ofstream(folder / "a_file") << "";
  }

  /// What bash offers for the last of these words.
  std::string offered(const std::string& words) {
    // compopt works only while a key is being answered.
    const std::string line = "cd '" + folder.string() +
                             "' && bash -c 'compopt() { :; }; source ./script; COMP_WORDS=(" +
                             words +
                             "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _espalier; "
                             "echo \"${COMPREPLY[*]}\"'";
    FILE* pipe = ::popen(line.c_str(), "r");
    if (pipe == nullptr) return "no shell";
    std::string output;
    std::array<char, 4096> piece{};
    while (const std::size_t n = std::fread(piece.data(), 1, piece.size(), pipe)) {
      output.append(piece.data(), n);
    }
    EXPECT_EQ(::pclose(pipe), 0);
    if (output.ends_with('\n')) output.pop_back();
    return output;
  }

  base::TemporaryFolder folder;
};

TEST_F(Completion, EveryCommandAndOptionIsInEveryScript) {
  const auto commands = words_of_help({});
  ASSERT_GE(commands.size(), 12U);
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const std::string text = script(shell);
    const auto expect_words = [&](const std::vector<std::string>& words) {
      for (const std::string& word : words) {
        const bool fish = shell == "fish" && word.starts_with('-');
        const std::string wanted = !fish                    ? word
                                   : word.starts_with("--") ? " -l " + word.substr(2) + " "
                                                            : " -s " + word.substr(1) + " ";
        EXPECT_THAT(text, HasSubstr(wanted)) << shell;
      }
    };
    expect_words(commands);
    for (const std::string& command : commands) {
      if (command.starts_with('-') || command == "bench")
        continue;  // which has a script of its own
      expect_words(words_of_help({command}));
    }
    for (const std::string command : {"list", "create", "drop"}) {
      expect_words(words_of_help({"map", command}));
    }
    for (const std::string command : {"create", "status"}) {
      expect_words(words_of_help({"shard", command}));
    }
  }
}

TEST_F(Completion, BashTakesItsScript) {
  const std::string line = "bash -n '" + (folder / "script").string() + "'";
  EXPECT_EQ(std::system(line.c_str()), 0);
}

TEST_F(Completion, BashOffersWhatFits) {
  EXPECT_EQ(offered("espalier exp"), "export");
  EXPECT_EQ(offered("espalier map \"\""), "list create drop");
  EXPECT_EQ(offered("espalier map create --node"), "--node-bytes --node-user");
  EXPECT_EQ(offered("espalier serve --node-cor"), "--node-cores");
  EXPECT_EQ(offered("espalier serve --log-level w"), "warn");
  EXPECT_EQ(offered("espalier get --format j"), "json-lines");
  EXPECT_EQ(offered("espalier completion z"), "zsh");
  EXPECT_EQ(offered("espalier get --file a_"), "a_file");
  EXPECT_EQ(offered("espalier load a_"), "a_file");
  EXPECT_EQ(offered("espalier scan --limit a_"), "");
  // "map" is an operand here, no command.
  EXPECT_EQ(offered("espalier get map --fl"), "--floor");
}

TEST_F(Completion, OptionsKnowWhatTheyTake) {
  CLI::App app("", "program");
  std::string text;
  bool flag = false;
  app.add_option("-f,--file", text, "it's a file")->type_name("FILE");
  app.add_option("--size", text, "")->type_name("SIZE|PERCENT");
  app.add_option("--way", text, "")->type_name("this|that");
  app.add_flag("--flag", flag, "");
  const CommandWords words = command_words(app);
  const auto option = [&](const std::string& name) {
    for (const OptionWords& found : words.options) {
      if (found.names.back() == name) return found;
    }
    return OptionWords{};
  };
  EXPECT_TRUE(option("--file").takes_file);
  EXPECT_EQ(option("--file").names.front(), "-f");
  EXPECT_TRUE(option("--size").takes_value);
  EXPECT_TRUE(option("--size").values.empty());
  EXPECT_EQ(option("--way").values, (std::vector<std::string>{"this", "that"}));
  EXPECT_FALSE(option("--flag").takes_value);
  EXPECT_FALSE(option("--help").takes_value);
  EXPECT_THAT(cmdline::zsh_completion(words), HasSubstr("'--file:it'\\''s a file'"));
  EXPECT_THAT(cmdline::fish_completion(words), HasSubstr("-d 'it\\'s a file'"));
}

TEST_F(Completion, OnlyShellsThatItKnows) {
  Tool tool;
  EXPECT_EQ(tool.run({"completion", "csh"}), kUsage);
  EXPECT_EQ(tool.run({"completion"}), kUsage);
}

}  // namespace
}  // namespace espalier::tools

// SPDX-License-Identifier: Apache-2.0
// Every command, and every setting of a node, has its place in the manuals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "cmdline/completion.hpp"
#include "node/config_settings.hpp"
#include "tools/commands.hpp"
#include "tools/testing/memory_files.hpp"

namespace espalier::tools {
namespace {

using cmdline::command_words;
using cmdline::CommandWords;
using ::testing::HasSubstr;

std::string read_document(const std::string& path) {
  std::ifstream in(std::filesystem::path(ESPALIER_SOURCE_DIR) / path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A manual page without what makes letters bold, and with plain hyphens.
std::string page(const std::string& name) {
  const std::string text = read_document("docs/man/" + name);
  return std::regex_replace(std::regex_replace(text, std::regex(R"(\\f[A-Z])"), ""),
                            std::regex(R"(\\-)"), "-");
}

/// All commands that do something, as they are typed: "get", "map create".
void add_commands_to(const CommandWords& command, std::vector<std::string>& found) {
  if (command.commands.empty()) found.push_back(command.path.substr(1));
  for (const CommandWords& child : command.commands) add_commands_to(child, found);
}

std::vector<std::string> all_commands() {
  MemorySource input("");
  MemoryFiles files;
  std::ostringstream out;
  Environment environment{
      .input = input, .out = out, .err = out, .files = files, .now_ns = [] { return 0; }};
  CLI::App app("", "espalier");
  Action chosen;
  add_commands(app, environment, chosen);
  std::vector<std::string> found;
  add_commands_to(command_words(app), found);
  return found;
}

TEST(Documents, EveryCommandIsInTheManualPage) {
  const std::string text = page("espalier.1");
  const auto commands = all_commands();
  ASSERT_GE(commands.size(), 17U);
  for (const std::string& command : commands) {
    // The tag of a paragraph begins with it, or names it behind a comma.
    const std::regex tag(R"(\.TP\n(?:[^\n]*, )?)" + command + R"((?:[ ,|\n]))");
    EXPECT_TRUE(std::regex_search(text, tag)) << command;
  }
}

TEST(Documents, EveryCommandIsInTheDocumentOfTheCommand) {
  const std::string text = read_document("docs/command.md");
  for (const std::string& command : all_commands()) {
    EXPECT_THAT(text, HasSubstr("| `espalier " + command + "` |")) << command;
  }
}

TEST(Documents, EverySettingIsInTheManualPageOfTheNode) {
  const std::string text = page("espalier-serve.1");
  for (const node::Setting& setting : node::settings()) {
    std::string what(setting.what);
    EXPECT_THAT(text, HasSubstr(".TP\n" + node::flag_name(setting.key) + " VALUE\n" + what + " "));
    EXPECT_THAT(text, HasSubstr("; " + std::string(setting.fallback) + " by default.\n"));
  }
  for (const std::string flag :
       {"--config PATH", "--map NAME", "--peer NAME=ADDRESS", "--check-config", "--print-config"}) {
    EXPECT_THAT(text, HasSubstr(".TP\n" + flag + "\n"));
  }
}

}  // namespace
}  // namespace espalier::tools

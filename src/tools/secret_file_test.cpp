// SPDX-License-Identifier: Apache-2.0
// --secret-file: every command that connects to nodes comes as the name of that file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tools/commands.hpp"
#include "tools/run.hpp"
#include "tools/testing/node_fixture.hpp"

namespace espalier::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kVariable = "ESPALIER_SECRET_FILE";

class SecretFileOption : public NodeTool {
 protected:
  void SetUp() override {
    write("node", line("admin", "admin", 'a') + line("reader", "read", 'b'));
    write("admin", line("admin", "admin", 'a'));
    write("reader", line("reader", "read", 'b'));
    write("unknown", line("admin", "admin", 'c'));
    config.clients.secrets = path("node");
    config.node.fabric = "roce://127.0.0.1:0/1";
    NodeTool::SetUp();
    address = node->fabric_addresses().front();
    // The option counts, and not the variable.
    setenv(kVariable, path("unknown").c_str(), 1);
  }
  void TearDown() override { unsetenv(kVariable); }

  std::string path(const std::string& name) { return (folder / name).string(); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(path(name)) << text;
    ASSERT_EQ(::chmod(path(name).c_str(), 0600), 0);
  }
  static std::string line(const std::string& name, const std::string& role, char digit) {
    return name + " " + role + " 0" + std::string(62, digit) + "0\n";
  }
  int run_as(const std::string& name, std::vector<std::string> words) {
    words.insert(words.end(), {"--secret-file", path(name)});
    return tool.run(words);
  }
  int run_at(const std::string& name, std::vector<std::string> words) {
    words.insert(words.end(), {"--at", address});
    return run_as(name, std::move(words));
  }
};

TEST_F(SecretFileOption, IsTakenByEveryCommandThatConnects) {
  const std::vector<std::vector<std::string>> commands = {
      {"put", "apple", "1"},
      {"get", "apple"},
      {"scan"},
      {"export", "--to", "csv"},
      {"check"},
      {"list"},
      {"map", "list"},
      {"map", "create", "other"},
      {"shard", "status", "split"},
      {"table", "create", "t", "id i64 not null"},
      {"table", "list"},
      {"table", "describe", "t"},
      {"seq", "create", "numbers"},
      {"seq", "take", "numbers"},
      {"embedding", "load", "e", "--generate", "1"},
      {"embedding", "reduce", "e", "0"},
      {"stats"},
      {"top", "--once"},
      {"ping", "--count", "1"},
      {"erase", "apple"},
      {"map", "drop", "other"},
  };
  ASSERT_EQ(run_as("admin", {"shard", "create", "split", "--shard", address}), kOk) << tool.err();
  for (const auto& words : commands) {
    EXPECT_EQ(run_at("admin", words), kOk) << words[0] << ": " << tool.err();
  }
  EXPECT_EQ(run_at("unknown", {"list"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("does not know this name with this secret"));
  EXPECT_EQ(run_as("unknown", {"shard", "create", "s", "--shard", address}), kFailed);
  EXPECT_EQ(run_at("reader", {"list"}), kOk) << tool.err();
  EXPECT_EQ(run_at("reader", {"put", "apple", "2"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("takes the role write"));
}

TEST_F(SecretFileOption, AFileThatCannotBeUsedIsToldAtOnce) {
  EXPECT_EQ(run_at("not there", {"list"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("No such file"));
  EXPECT_THAT(tool.err(), HasSubstr("--secret-file names it"));
  write("damaged", "admin admin 12\n");
  EXPECT_EQ(run_at("damaged", {"list"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("line 1"));
  ASSERT_EQ(::chmod(path("admin").c_str(), 0644), 0);
  EXPECT_EQ(run_at("admin", {"list"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has mode 0644"));
  EXPECT_THAT(tool.err(), Not(HasSubstr("aaaa")));
  EXPECT_EQ(tool.run({"list", "--at", address, "--secret-file", ""}), kUsage);
  EXPECT_EQ(run_as("admin", {"shard", "create", "s", "--shard", address}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has mode 0644"));
}

/// Counts the commands below one that take an address of a node, and those that have the options.
/// A device, which serves, takes the user of its host's node from the environment alone.
void count_commands(CLI::App& app, std::size_t& connecting, std::size_t& having) {
  for (CLI::App* const command : app.get_subcommands({})) {
    count_commands(*command, connecting, having);
    const auto has = [&](const char* name) {
      return command->get_option_no_throw(name) != nullptr;
    };
    connecting += has("--at") || has("--shard") || has("--node-host") ? 1 : 0;
    const bool serves = has("--node-host");
    having += has("--secret-file") && (has("--node-user") || serves) ? 1 : 0;
  }
}

TEST(SecretFileOptions, NoCommandThatConnectsIsWithoutIt) {
  MemorySource input("");
  MemoryFiles files;
  std::ostringstream out;
  Environment environment{
      .input = input, .out = out, .err = out, .files = files, .now_ns = [] { return 0; }};
  CLI::App app("", "espalier");
  Action chosen;
  add_commands(app, environment, chosen);
  std::size_t connecting = 0;
  std::size_t having = 0;
  count_commands(app, connecting, having);
  EXPECT_EQ(connecting, having);
  EXPECT_GE(connecting, 30u);
}

}  // namespace
}  // namespace espalier::tools

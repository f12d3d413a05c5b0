// SPDX-License-Identifier: Apache-2.0
#include "tools/run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "tools/testing/tool_fixture.hpp"

namespace espalier::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Run, HelpsWithoutFailing) {
  Tool tool;
  EXPECT_EQ(tool.run({"--help"}), kOk);
  const std::vector<std::string> commands{"get",    "put",    "erase",     "scan", "load",
                                          "export", "check",  "serve",     "map",  "stats",
                                          "ping",   "fabric", "completion"};
  for (const std::string& command : commands) {
    EXPECT_THAT(tool.out(), HasSubstr("\n  " + command + " "));
  }
  for (const std::string& command : commands) {
    EXPECT_EQ(tool.run({command, "--help"}), kOk);
    EXPECT_THAT(tool.out(), HasSubstr("Examples:\n  "));
    const std::string help = tool.out();
    EXPECT_EQ(tool.run({"help", command}), kOk);
    EXPECT_EQ(tool.out(), help);
    EXPECT_EQ(tool.err(), "");
  }
  EXPECT_EQ(tool.run({"--version"}), kOk);
  EXPECT_THAT(tool.out(), StartsWith("espalier "));
}

TEST(Run, SaysWhatIsWrongWithACommandLine) {
  Tool tool;
  EXPECT_EQ(tool.run({}), kUsage);
  EXPECT_EQ(tool.err(), "espalier: error: which command?\n  See espalier --help.\n");
  EXPECT_EQ(tool.run({"laod", "x"}), kUsage);
  EXPECT_EQ(tool.err(),
            "espalier: error: there is no command 'laod'\n"
            "  Did you mean load? See espalier --help.\n");
  EXPECT_EQ(tool.run({"{\x1b"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("there is no command '{\\x1b'"));
  EXPECT_EQ(tool.run({"scan", "--limt", "3"}), kUsage);
  EXPECT_EQ(tool.err(),
            "espalier: error: unknown option '--limt'\n"
            "  Did you mean --limit? See espalier scan --help.\n");
  EXPECT_EQ(tool.run({"get", "-k"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("put -- before it"));
  EXPECT_EQ(tool.run({"scan", "a", "b", "c"}), kUsage);
  EXPECT_THAT(tool.err(), StartsWith("espalier: error: there is no place for argument 'c'\n"));
  EXPECT_EQ(tool.run({"scan", "--limit", "many"}), kUsage);
  EXPECT_EQ(tool.run({"map", "lits"}), kUsage);
  EXPECT_EQ(tool.err(),
            "espalier: error: there is no command 'espalier map lits'\n"
            "  Did you mean list? See espalier map --help.\n");
  EXPECT_EQ(tool.out(), "");
}

TEST(Run, ColoursMessagesOnRequest) {
  Tool tool;
  tool.colour = true;
  EXPECT_EQ(tool.run({}), kUsage);
  EXPECT_THAT(tool.err(), StartsWith("espalier: \x1b[1;31merror:\x1b[0m which command?"));
}

TEST(Run, RunsCommandsFromElsewhere) {
  Tool tool;
  const std::vector<Mount> mounts{[](CLI::App& app, Environment& environment, Action& chosen) {
    app.add_subcommand("greet", "Say hello")->callback([&environment, &chosen] {
      chosen = [&environment] {
        environment.out << "hello\n";
        return 7;
      };
    });
  }};
  EXPECT_EQ(tool.run({"greet"}, mounts), 7);
  EXPECT_EQ(tool.out(), "hello\n");
  EXPECT_EQ(tool.run({"greett"}, mounts), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("Did you mean greet?"));
}

}  // namespace
}  // namespace espalier::tools

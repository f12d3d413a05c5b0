// SPDX-License-Identifier: Apache-2.0
// Every benchmark has its place in the manuals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "bench/commands.hpp"

namespace espalier::bench {
namespace {

std::string read(const std::string& path) {
  std::ifstream in(std::filesystem::path(ESPALIER_SOURCE_DIR) / path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(BenchDocuments, EveryBenchmarkIsInTheManualPageAndTheDocumentOfTheCommand) {
  const std::string page = read("docs/man/espalier-bench.1");
  const std::string document = read("docs/command.md");
  std::ostringstream out;
  CLI::App app("", "espalier-bench");
  cmdline::Action chosen;
  add_bench_commands(app, Output{out, out}, chosen);
  const auto commands = app.get_subcommands(nullptr);
  ASSERT_GE(commands.size(), 7U);
  for (const CLI::App* command : commands) {
    EXPECT_THAT(page, ::testing::HasSubstr(".TP\n\\fB" + command->get_name() + "\\fR "));
    const std::string row = "| `espalier-bench " + command->get_name() + "` |";
    EXPECT_THAT(document, ::testing::HasSubstr(row));
  }
}

}  // namespace
}  // namespace espalier::bench

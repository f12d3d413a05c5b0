// SPDX-License-Identifier: Apache-2.0
// Every experiment runs with tiny sizes, and prints its fixed number of lines with its fixed keys.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "bench/commands.hpp"
#include "bench/report.hpp"

namespace espalier::bench {
namespace {

constexpr const char* kRecorded = "bench/testing/lines.txt";
constexpr std::string_view kCommandBegins = "$ ";

/// A command line, and the recorded keys of its lines.
struct RecordedLines {
  std::string command;
  std::string keys{};

  friend void PrintTo(const RecordedLines& lines, std::ostream* out) { *out << lines.command; }
};

std::vector<RecordedLines> recorded() {
  std::ifstream in(std::filesystem::path(ESPALIER_SOURCE_DIR) / kRecorded);
  std::vector<RecordedLines> all;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(kCommandBegins)) {
      all.push_back({line.substr(kCommandBegins.size())});
    } else if (!all.empty() && !line.empty()) {
      all.back().keys += line + "\n";
    }
  }
  return all;
}

/// How many lines have which keys, in order: "12 bench keys ops", a line for each kind.
std::string keys_in(const std::string& out) {
  std::map<std::string, int> kinds;
  std::istringstream texts(out);
  for (std::string text; std::getline(texts, text);) {
    std::set<std::string> keys;
    const Json line = Json::parse(text);
    for (const auto& [key, value] : line.items()) keys.insert(key);
    std::string kind;
    for (const std::string& key : keys) kind += " " + key;
    ++kinds[kind];
  }
  std::string all;
  for (const auto& [kind, count] : kinds) all += std::to_string(count) + kind + "\n";
  return all;
}

class BenchLines : public testing::TestWithParam<RecordedLines> {};

// A removed or new key is a change for programs that read it: it is recorded on purpose.
TEST_P(BenchLines, HaveTheKeysThatAreRecorded) {
  SCOPED_TRACE("espalier-bench " + GetParam().command + ", in " + kRecorded);
  std::istringstream words(GetParam().command + " --json");
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) arguments.push_back(word);
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run(arguments, {out, err}), 0) << err.str();
  EXPECT_EQ(keys_in(out.str()), GetParam().keys);
}

INSTANTIATE_TEST_SUITE_P(All, BenchLines, testing::ValuesIn(recorded()),
                         [](const testing::TestParamInfo<RecordedLines>& parameter) {
                           std::string name = std::to_string(parameter.index) + "_" +
                                              parameter.param.command.substr(0, 40);
                           std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
                           std::ranges::replace_if(
                               name, [](char c) { return c == ' ' || c == ','; }, '_');
                           return name;
                         });

/// The names in "--experiment a,b", or in a help text, which continues after ';'.
std::set<std::string> names_in(std::string list) {
  list = list.substr(0, list.find_first_of("; "));
  std::set<std::string> names;
  std::istringstream parts(list);
  for (std::string name; std::getline(parts, name, ',');) names.insert(name);
  return names;
}

TEST(BenchLinesRecorded, AreOfEveryExperimentOfEveryBenchmark) {
  const std::string flag = "--experiment";
  std::map<std::string, std::set<std::string>> ran;
  for (const RecordedLines& each : recorded()) {
    std::set<std::string>& of = ran[each.command.substr(0, each.command.find(' '))];
    const std::size_t at = each.command.find(flag + " ");
    if (at != std::string::npos) of.merge(names_in(each.command.substr(at + flag.size() + 1)));
  }
  ran["rpc"].insert("peer");  // it needs redis-server, which not every machine has
  std::ostringstream out;
  CLI::App app;
  cmdline::Action chosen;
  const Output output{out, out};
  add_bench_commands(app, output, chosen);
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    ASSERT_TRUE(ran.contains(command->get_name())) << command->get_name();
    const CLI::Option* option = command->get_option_no_throw(flag);
    if (option == nullptr) continue;
    std::string help = option->get_description();
    help = help.substr(0, help.find(';'));
    std::erase(help, ' ');
    EXPECT_EQ(ran[command->get_name()], names_in(help)) << command->get_name();
  }
}

}  // namespace
}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
// Any bytes as a command line, run to its end on files in memory: it must return one of the three
// exit codes, say something on `err` when the command line is wrong, and leave whole files.
//
// Each line of the input is one argument; lines after an empty one are the content of "f.csv",
// which is also what standard input holds. Nothing outside can be opened (memory_files.hpp).
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tools/testing/tool_fixture.hpp"

namespace espalier::tools {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

/// The arguments and the content that an input stands for.
struct Script {
  std::vector<std::string> arguments;
  std::string content;
};

Script split(const std::string& bytes) {
  constexpr std::size_t kArgumentsMax = 24;
  Script script;
  std::size_t at = 0;
  while (at < bytes.size() && script.arguments.size() < kArgumentsMax) {
    const std::size_t newline = std::min(bytes.find('\n', at), bytes.size());
    std::string argument = bytes.substr(at, newline - at);
    at = newline + 1;
    if (argument.empty()) break;
    // The system hands over arguments that end at their first NUL.
    argument.resize(std::min(argument.find('\0'), argument.size()));
    script.arguments.push_back(argument == "<empty>" ? "" : std::move(argument));
  }
  if (at < bytes.size()) script.content = bytes.substr(at);
  return script;
}

void run_one(const std::string& bytes) {
  const Script script = split(bytes);
  Tool tool;
  tool.input = script.content;
  tool.files.contents["f.csv"] = script.content;
  tool.files.contents["f"] = script.content;
  tool.files.piece_bytes = 7;
  const int exit_code = tool.run(script.arguments);
  require(exit_code == kOk || exit_code == kFailed || exit_code == kUsage);
  require(exit_code != kUsage || tool.err().find("espalier: error: ") != std::string::npos);

  // Whatever was written back can be written back again, and then does not change any more.
  if (exit_code == kOk && !script.arguments.empty() && script.arguments[0] == "put") {
    const auto written = tool.files.contents;
    require(tool.run(script.arguments) == kOk);
    require(tool.files.contents == written);
  }
}

}  // namespace
}  // namespace espalier::tools

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::tools::run_one(std::string(data, data + size));
  return 0;
}

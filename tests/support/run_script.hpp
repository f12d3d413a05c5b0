// SPDX-License-Identifier: Apache-2.0
// Runs the scripts of ./run with tiny sizes and the programs of this build, in a copy of the
// project's folder.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "base/temporary_folder.hpp"

namespace espalier::test {

class RunScript : public ::testing::Test {
 protected:
  /// `program`: the command, in the folder of the other programs. `sources`: the project's folder.
  RunScript(const std::filesystem::path& program, const std::filesystem::path& sources) {
    namespace fs = std::filesystem;
    fs::create_directories(folder_ / "build/release");
    fs::create_directory_symlink(program.parent_path(), folder_ / "build/release/bin");
    fs::create_directory_symlink(sources / "scripts", folder_ / "scripts");
  }
  // Ends the processes that a script leaves running.
  ~RunScript() override {
    for (const char* const name : {"controller", "run", "node"}) {
      const std::string text = read("build/run/" + std::string(name) + ".pid");
      if (!text.empty()) ::kill(std::stoi(text), SIGKILL);
    }
  }

  /// Runs a shell command in the folder; its output is in output_. Returns its exit code.
  int run(const std::string& command) {
    const std::string line = "cd '" + folder_.string() + "' && { " + command + "; } >output 2>&1";
    const int status = std::system(line.c_str());  // NOLINT: the test's own words
    output_ = read("output");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  /// Runs commands, one a line, until one fails.
  int run_all(const std::string& commands) {
    const std::string quoted = std::regex_replace(commands, std::regex("'"), "'\\''");
    return run("bash -c 'set -e; " + quoted + "'");
  }
  /// The commands that a script suggests.
  [[nodiscard]] std::string offered() const {
    const std::size_t begin = output_.find("Try it:\n") + 8;
    return output_.substr(begin, output_.find("\n\n", begin) - begin);
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream in(folder_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  base::TemporaryFolder folder_;
  std::string output_;
};

}  // namespace espalier::test

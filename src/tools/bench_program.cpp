// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_program.hpp"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace espalier::tools {
namespace {

constexpr const char* kProgram = "espalier-bench";

/// Beside the program that runs; empty if the system does not say where that is.
std::string path_beside_this() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string() : (self.parent_path() / kProgram).string();
}

}  // namespace

cmdline::Failure start_bench_program(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{kProgram};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  const std::string beside = path_beside_this();
  if (!beside.empty()) ::execv(beside.c_str(), pointers.data());
  if (beside.empty() || errno == ENOENT) ::execvp(kProgram, pointers.data());
  if (errno != ENOENT) {
    return {cmdline::kFailed,
            std::string("cannot start ") + kProgram + ": " + std::generic_category().message(errno),
            ""};
  }
  return {
      cmdline::kFailed, std::string("there is no ") + kProgram + " beside this program or in PATH",
      "Build it: cmake --build --preset release --target espalier_bench_program; and install it "
      "with cmake --install build/release."};
}

}  // namespace espalier::tools

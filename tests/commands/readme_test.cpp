// SPDX-License-Identifier: Apache-2.0
// The README keeps its promises: its program is the one that is compiled and run, and every command
// in it prints what it says.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/temporary_folder.hpp"
#include "tests/support/node_program.hpp"

namespace espalier {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = ESPALIER_SOURCE_DIR;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The insides of all fenced blocks of a language, in order.
std::vector<std::string> blocks(const std::string& text, const std::string& language) {
  const std::string fence = "\n```" + language + "\n";
  std::vector<std::string> found;
  for (std::size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at)) {
    at += fence.size();
    const std::size_t end = text.find("\n```\n", at);
    if (end == std::string::npos) throw std::runtime_error("a block without an end");
    found.push_back(text.substr(at, end + 1 - at));
  }
  return found;
}

/// The text without its fenced blocks.
std::string prose(const std::string& text) {
  std::string kept;
  bool fenced = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line = std::string_view(text).substr(at, end - at);
    const bool fence = line.starts_with("```");
    if (!fenced && !fence) kept += line;
    fenced = fenced != fence;
    at = end;
  }
  return kept;
}

/// A folder that looks like the project after a release build, in which commands may write.
class Workplace {
 public:
  Workplace() {
    fs::create_directories(folder_ / "build/release");
    fs::create_directory_symlink(fs::path(ESPALIER_PROGRAM).parent_path(),
                                 folder_ / "build/release/bin");
    fs::create_directory_symlink(kRoot / "tests", folder_ / "tests");
  }

  /// What a command prints to standard output. Progress and remarks are not part of the promise.
  [[nodiscard]] std::string run(std::string_view command) const {
    const std::string line = "cd '" + folder_.string() + "' && { " + std::string(command) + "; }";
    FILE* pipe = popen(line.c_str(), "r");
    if (pipe == nullptr) throw std::runtime_error("no shell");
    std::string output;
    std::array<char, 4096> piece{};
    while (const std::size_t n = std::fread(piece.data(), 1, piece.size(), pipe)) {
      output.append(piece.data(), n);
    }
    EXPECT_EQ(pclose(pipe), 0) << command;
    return output;
  }

  /// Starts a node as a command in the background, and waits until it serves.
  [[nodiscard]] std::unique_ptr<test::NodeProgram> start(const std::string& command) const {
    auto node = std::make_unique<test::NodeProgram>(
        folder_.path(), std::vector<std::string>{"/bin/sh", "-c", "exec " + command});
    EXPECT_EQ(node->next_message(), "READY=1") << command << '\n' << read(folder_ / "log");
    return node;
  }

 private:
  base::TemporaryFolder folder_;
};

/// Variables that a session exports, for as long as it lasts.
class Exports {
 public:
  Exports() = default;
  Exports(const Exports&) = delete;
  Exports& operator=(const Exports&) = delete;
  ~Exports() {
    for (const std::string& name : names_) ::unsetenv(name.c_str());
  }
  void add(const std::string& assignment) {
    const std::size_t equals = assignment.find('=');
    names_.push_back(assignment.substr(0, equals));
    ::setenv(names_.back().c_str(), assignment.substr(equals + 1).c_str(), 1);
  }

 private:
  std::vector<std::string> names_;
};

/// Does what a session types, and returns what it shows. Nodes end with it.
std::string play(const Workplace& workplace, const std::string& session) {
  constexpr std::string_view kExport = "export ";
  constexpr std::string_view kBackground = " &";
  std::string shown;
  Exports exports;
  std::vector<std::unique_ptr<test::NodeProgram>> nodes;
  for (std::size_t at = 0; at < session.size();) {
    const std::size_t end = session.find('\n', at);
    const std::string line = session.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with("$ ")) continue;
    const std::string command = line.substr(2);
    shown += line + "\n";
    if (command.starts_with(kExport)) {
      exports.add(command.substr(kExport.size()));
    } else if (command.ends_with(kBackground)) {
      nodes.push_back(workplace.start(command.substr(0, command.size() - kBackground.size())));
    } else {
      shown += workplace.run(command);
    }
  }
  return shown;
}

TEST(Readme, ItsProgramIsTheOneThatIsBuilt) {
  const auto programs = blocks(read(kRoot / "README.md"), "cpp");
  ASSERT_EQ(programs.size(), 1u);
  EXPECT_EQ(programs.front(), read(kRoot / "example/first_map.cpp"));
}

TEST(Readme, TheOffloadOfTheDocumentsIsTheOneThatIsTested) {
  const auto programs = blocks(read(kRoot / "docs/offloads.md"), "cpp");
  ASSERT_EQ(programs.size(), 1u);
  const std::string source = read(kRoot / "src/offload/example_offload_test.cpp");
  EXPECT_NE(source.find("// [docs/offloads.md]\n" + programs.front() + "// [docs/offloads.md]\n"),
            std::string::npos);
}

TEST(Readme, TheProgramOfTablesIsTheOneThatIsBuilt) {
  const auto programs = blocks(read(kRoot / "docs/tables.md"), "cpp");
  ASSERT_FALSE(programs.empty());  // the others are parts of one
  EXPECT_EQ(programs.front(), read(kRoot / "example/first_table.cpp"));
}

TEST(ReadmeSlow, ItsCommandsPrintWhatItSays) {
  const Workplace workplace;
  const auto sessions = blocks(read(kRoot / "README.md"), "console");
  ASSERT_EQ(sessions.size(), 3u);
  for (const std::string& session : sessions) EXPECT_EQ(play(workplace, session), session);
}

/// All documents, relative to the root.
std::vector<fs::path> documents() {
  std::vector<fs::path> found = {"README.md", "ARCHITECTURE.md", "CHANGELOG.md"};
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "docs")) {
    if (entry.path().extension() == ".md") found.push_back(fs::relative(entry.path(), kRoot));
  }
  return found;
}

TEST(Readme, NoLinkOfTheDocumentsLeadsNowhere) {
  for (const fs::path& document : documents()) {
    const std::string text = prose(read(kRoot / document));
    for (std::size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at)) {
      at += 2;
      const std::string target = text.substr(at, text.find_first_of(")#", at) - at);
      if (target.empty() || target.find("://") != std::string::npos) continue;
      const fs::path file = kRoot / document.parent_path() / target;
      EXPECT_TRUE(fs::exists(file)) << document << ": " << target;
    }
  }
}

TEST(Readme, EverySourceThatTheDocumentsNameExists) {
  const std::regex source("`((src|include|bench|tests|example|scripts|cmake)/[A-Za-z0-9_./]+)`");
  std::size_t named = 0;
  for (const fs::path& document : documents()) {
    const std::string text = prose(read(kRoot / document));
    for (std::sregex_iterator at(text.begin(), text.end(), source), end; at != end; ++at) {
      EXPECT_TRUE(fs::exists(kRoot / (*at)[1].str())) << document << ": " << (*at)[1].str();
      ++named;
    }
  }
  EXPECT_GT(named, 50u);
}

/// The paths of all files of the project, each with a slash before it.
std::vector<std::string> all_files() {
  std::vector<std::string> found;
  for (const char* folder : {"src", "include", "bench", "tests", "example", "scripts", "cmake",
                             "docs", "dist", "integrations", "dataplane"}) {
    if (!fs::exists(kRoot / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      if (entry.is_regular_file()) {
        found.push_back("/" + fs::relative(entry.path(), kRoot).generic_string());
      }
    }
  }
  for (const auto& entry : fs::directory_iterator(kRoot)) {
    if (entry.is_regular_file()) found.push_back("/" + entry.path().filename().string());
  }
  return found;
}

// By its name alone, or with as much of its path as one likes. `x.cpp` and its like stand for any.
TEST(Readme, EveryFileThatTheDocumentsNameExists) {
  const std::regex name("`([A-Za-z0-9_][A-Za-z0-9_./-]*\\.(hpp|cpp|h|md|txt|sh|awk|cmake|py))`");
  const std::vector<std::string> files = all_files();
  std::size_t named = 0;
  for (const fs::path& document : documents()) {
    if (document == "CHANGELOG.md") continue;  // which tells of what was
    const std::string text = prose(read(kRoot / document));
    for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) {
      const std::string wanted = "/" + (*at)[1].str();
      if (wanted.starts_with("/x.") || wanted.starts_with("/x_")) continue;
      const auto is_it = [&](const std::string& file) { return file.ends_with(wanted); };
      EXPECT_TRUE(std::ranges::any_of(files, is_it)) << document << ": " << (*at)[1].str();
      ++named;
    }
  }
  EXPECT_GT(named, 100u);
}

}  // namespace
}  // namespace espalier

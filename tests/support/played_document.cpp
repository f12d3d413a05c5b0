// SPDX-License-Identifier: Apache-2.0
#include "tests/support/played_document.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace espalier::test {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExport = "export ";
constexpr std::string_view kBackground = " &";
constexpr std::string_view kFails = "# fails";

std::string quoted(const std::string& text) { return "'" + text + "'"; }

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

/// New files are made as a user's are, and not as this test has its own.
class NoMask {
 public:
  NoMask() : before_(::umask(0)) {}
  NoMask(const NoMask&) = delete;
  NoMask& operator=(const NoMask&) = delete;
  ~NoMask() { ::umask(before_); }

 private:
  mode_t before_;
};

}  // namespace

std::string text_of_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string document_of_manual(const std::string& page) {
  const std::regex escaped_minus(R"(\\-)");
  std::string document;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line == ".EX") line = "```sh";
    if (line == ".nf") line = "```";
    if (line == ".EE" || line == ".fi") line = "```";
    document += std::regex_replace(line, escaped_minus, "-") + "\n";
  }
  return document;
}

std::vector<Block> blocks_of(const std::string& document) {
  constexpr std::string_view kFence = "\n```";
  std::vector<Block> found;
  for (std::size_t at = document.find(kFence); at != std::string::npos;
       at = document.find(kFence, at)) {
    at += kFence.size();
    const std::size_t begin = document.find('\n', at) + 1;
    // An empty block has no line.
    const std::size_t end = document.find(kFence, begin - 1);
    if (end == std::string::npos) throw std::runtime_error("a block without an end");
    found.push_back({document.substr(at, begin - 1 - at), document.substr(begin, end + 1 - begin)});
    at = end + kFence.size();
  }
  return found;
}

std::vector<Typed> commands_of(const Block& block) {
  const bool console = block.language == "console";
  if (!console && block.language != "sh") return {};
  std::vector<Typed> commands;
  bool goes_on = false;
  for (std::size_t at = 0; at < block.text.size();) {
    const std::size_t end = block.text.find('\n', at);
    const std::string line = block.text.substr(at, end - at);
    at = end + 1;
    if (goes_on) {
      commands.back().command += "\n" + line;
    } else if (console && !line.starts_with("$ ")) {
      if (commands.empty()) throw std::runtime_error("a block shows before one types: " + line);
      *commands.back().shown += line + "\n";
      continue;
    } else if (console) {
      commands.push_back({line.substr(2), ""});
    } else {
      commands.push_back({line, std::nullopt});
    }
    goes_on = line.ends_with('\\');
  }
  return commands;
}

std::vector<std::string> untyped_commands_of(const std::string& document) {
  const std::regex command(
      R"(\$ |([A-Z_]+=\S* +)*(((\.|\.\.|~|build|scripts)/\S+|espalier|espalier-bench|apt|apt-get)"
      R"(|cat|cmake|ctest|echo|export|git|g\+\+|make|ninja|openssl|printf|python3|source|sudo)"
      R"(|systemctl|zcat)( |$)))");
  constexpr std::size_t kIndented = 4;
  std::vector<std::string> found;
  std::istringstream lines(document);
  bool fenced = false;
  bool typed = false;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t blanks = line.find_first_not_of(" \t");
    if (blanks == std::string::npos) continue;
    const std::string text = line.substr(blanks);
    if (text.starts_with("```") || text.starts_with("~~~")) {
      if (blanks != 0 || text.starts_with("~~~")) found.push_back(line);
      typed = !fenced && (text == "```sh" || text == "```console");
      fenced = !fenced;
      continue;
    }
    const bool block = fenced ? !typed : blanks >= kIndented || line.front() == '\t';
    if (block && std::regex_search(text, command, std::regex_constants::match_continuous)) {
      found.push_back(line);
    }
  }
  return found;
}

Workplace::Workplace(const fs::path& programs, const fs::path& sources, bool as_other)
    : as_other_(as_other) {
  fs::create_directories(folder_ / "build/release");
  for (const fs::path file : {"tests/data/elements.csv", "src/dataplane/frames/program.txt"}) {
    const fs::path copy = folder_.path() / file;
    fs::create_directories(copy.parent_path());
    fs::copy_file(sources / file, copy);
  }
  const fs::path bin = folder_ / "build/release/bin";
  if (as_other_) {
    // The build may lie where others may not look.
    fs::create_directory(bin);
    for (const char* program : {"espalier", "first_map", "first_node", "first_table"}) {
      if (fs::exists(programs / program)) fs::copy_file(programs / program, bin / program);
    }
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      EXPECT_EQ(::chown(entry.path().c_str(), kOtherUser, kOtherUser), 0);
    }
    EXPECT_EQ(::chown(folder_.path().c_str(), kOtherUser, kOtherUser), 0);
  } else {
    fs::create_directory_symlink(programs, bin);
  }
}

std::string Workplace::type(const std::string& command) {
  if (command.starts_with(kExport)) {
    exports_ += command + "\n";
    return "";
  }
  if (!command.ends_with(kBackground)) {
    return run(command, command.find(kFails) != std::string::npos);
  }
  start(command.substr(0, command.size() - kBackground.size()));
  return "";
}

std::string Workplace::shell_line(const std::string& script) const {
  const std::string user = std::to_string(kOtherUser);
  const std::string other =
      "setpriv --reuid=" + user + " --regid=" + user + " --clear-groups --pdeathsig=KILL ";
  return (as_other_ ? other : std::string()) + "/bin/bash " + quoted((folder_ / script).string());
}

std::string Workplace::run(const std::string& command, bool fails) {
  // With pipefail: the first command of a pipe must succeed as well as the last.
  write_file(folder_ / "typed", "cd " + quoted(folder_.string()) +
                                    "\numask 022\nunset ESPALIER_AT XDG_RUNTIME_DIR NOTIFY_SOCKET\n"
                                    "set -o pipefail\n"
                                    "export HOME=\"$PWD\" PATH=\"$PWD/build/release/bin:$PATH\"\n" +
                                    exports_ + command + "\n");
  const std::string errors = (folder_ / "errors").string();
  FILE* const pipe = popen((shell_line("typed") + " 2>" + quoted(errors)).c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("no shell");
  std::string output;
  std::array<char, 4096> piece{};
  while (const std::size_t n = std::fread(piece.data(), 1, piece.size(), pipe)) {
    output.append(piece.data(), n);
  }
  const int status = pclose(pipe);
  EXPECT_TRUE(WIFEXITED(status) && (WEXITSTATUS(status) != 0) == fails)
      << command << "\nended with " << status << ": " << output << text_of_file(errors);
  return output;
}

void Workplace::start(const std::string& command) {
  const std::string name = "background" + std::to_string(started_++);
  const fs::path log = folder_ / (name + ".log");
  // A node without a socket of its own listens in the folder that a service of systemd has.
  write_file(folder_ / name,
             "cd " + quoted(folder_.string()) +
                 "\numask 022\nexport HOME=\"$PWD\" RUNTIME_DIRECTORY=\"$PWD\" PATH=" +
                 "\"$PWD/build/release/bin:/usr/bin:/bin\"\n" + exports_ + "exec " + command +
                 " >" + quoted(log.string()) + " 2>&1\n");
  std::unique_ptr<NodeProgram> program;
  {
    const NoMask others_may_notify;
    program = std::make_unique<NodeProgram>(
        folder_.path(), std::vector<std::string>{"/bin/sh", "-c", "exec " + shell_line(name)});
  }
  if (std::regex_search(command, std::regex("espalier serve\\b"))) {
    EXPECT_EQ(program->next_message(), "READY=1") << command << '\n' << text_of_file(log);
  } else {
    // The others report when they have started.
    constexpr int kWaitMs = 10;
    constexpr int kWaits = 6000;
    const auto has_begun = [&] { return fs::exists(log) && fs::file_size(log) != 0; };
    int waits = 0;
    for (; waits < kWaits && !has_begun(); ++waits) ::poll(nullptr, 0, kWaitMs);
    EXPECT_LT(waits, kWaits) << command << " does not begin";
  }
  programs_.push_back(std::move(program));
}

}  // namespace espalier::test

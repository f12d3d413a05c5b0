// SPDX-License-Identifier: Apache-2.0
// `espalier top` on a terminal: it restores the terminal however it ends.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/temporary_folder.hpp"
#include "tests/support/node_program.hpp"
#include "tests/support/terminal_program.hpp"

namespace espalier {
namespace {

constexpr const char* kEnter = "\x1b[?1049h";
constexpr const char* kLeave = "\x1b[?1049l";

class Top : public ::testing::Test {
 protected:
  Top() {
    node.emplace(folder.path(), std::vector<std::string>{ESPALIER_PROGRAM, "serve", "--node-socket",
                                                         (folder / "s").string(), "--memory-limit",
                                                         "64MiB", "--memory-huge-pages", "no"});
    EXPECT_EQ(node->next_message(), "READY=1");
  }

  [[nodiscard]] std::vector<std::string> top(std::vector<std::string> more = {}) const {
    std::vector<std::string> words{ESPALIER_PROGRAM, "top", "--at",
                                   "unix:" + (folder / "s").string()};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  base::TemporaryFolder folder;
  std::optional<test::NodeProgram> node;
};

TEST_F(Top, TakesTheTerminalAndGivesItBack) {
  test::TerminalProgram program(top({"--interval", "3600"}), 80, 24);
  ASSERT_TRUE(program.wait_for("now by activity")) << program.written();
  EXPECT_TRUE(program.written().starts_with(kEnter)) << program.written();
  EXPECT_FALSE(program.reads_lines());
  program.type("s");
  ASSERT_TRUE(program.wait_for("now by size")) << program.written();
  program.type("\x1b[A");  // no key of ours
  program.resize(30, 8);
  // The sort is there a second time, and the address no longer fits.
  ASSERT_TRUE(program.wait_for("now by size", 2)) << program.written();
  program.type("\x1b[Bq");  // what comes behind such a key counts
  EXPECT_EQ(program.wait(), 0);
  EXPECT_TRUE(program.written().ends_with(kLeave)) << program.written();
  EXPECT_TRUE(program.reads_lines());
}

TEST_F(Top, GivesTheTerminalBackWhenASignalEndsIt) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    test::TerminalProgram program(top({"--interval", "3600"}), 80, 24);
    ASSERT_TRUE(program.wait_for("q quits")) << program.written();
    program.send(signal);
    EXPECT_EQ(program.wait(), -signal);
    EXPECT_TRUE(program.written().ends_with(kLeave)) << program.written();
    EXPECT_TRUE(program.reads_lines());
  }
}

// Otherwise the user would have to close the terminal.
TEST_F(Top, EndsWhileTheNodeDoesNotAnswer) {
  test::TerminalProgram program(top({"--interval", "0.05"}), 80, 24);
  ASSERT_TRUE(program.wait_for("q quits")) << program.written();
  node->stop();
  while (!program.is_in_call(SYS_futex)) std::this_thread::yield();  // waits for an answer
  program.send(SIGINT);
  EXPECT_EQ(program.wait(), -SIGINT);
  EXPECT_TRUE(program.written().ends_with(kLeave)) << program.written();
  EXPECT_TRUE(program.reads_lines());
}

TEST_F(Top, GivesTheTerminalBackWhileItIsStopped) {
  test::TerminalProgram program(top({"--interval", "3600"}), 80, 24);
  ASSERT_TRUE(program.wait_for("q quits")) << program.written();
  program.type("\x1a");  // Ctrl-Z
  if (!program.wait_for(kLeave)) FAIL() << program.written();
  // In a session without a shell nothing could continue the program: there it does not stop, and
  // draws the picture again immediately.
  ASSERT_TRUE(program.wait_for("q quits", 2)) << program.written();
  EXPECT_FALSE(program.reads_lines());
  program.type("q");
  EXPECT_EQ(program.wait(), 0);
}

TEST_F(Top, PrintsTablesWhereThereIsNoTerminal) {
  const std::string command = std::string(ESPALIER_PROGRAM) + " top --count 2 --interval 0.05 " +
                              "--at 'unix:" + (folder / "s").string() + "' > '" +
                              (folder / "out").string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::ifstream in(folder / "out");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("node_stats"), std::string::npos) << text;
}

}  // namespace
}  // namespace espalier

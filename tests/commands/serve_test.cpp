// SPDX-License-Identifier: Apache-2.0
// `espalier serve` and its clients as programs, from start to stop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/temporary_folder.hpp"
#include "espalier/map.hpp"
#include "tests/support/child.hpp"
#include "tests/support/node_program.hpp"

namespace espalier {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Serve : public ::testing::Test {
 protected:
  base::TemporaryFolder folder;
  std::string address = "unix:" + (folder / "s").string();

  [[nodiscard]] std::vector<std::string> serve(std::vector<std::string> more = {}) const {
    std::vector<std::string> words{ESPALIER_PROGRAM, "serve", "--node-socket",       folder / "s",
                                   "--memory-limit", "64MiB", "--memory-huge-pages", "no"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream in(folder / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// Runs a program without this standard descriptor, and with an unread output. Returns whether it
  /// opens /dev/null under that number, after the opens of its loader.
  [[nodiscard]] bool opens_null(const std::string& number,
                                const std::vector<std::string>& program) const {
    std::error_code failed;  // it does not run yet, or has nothing by this number
    fs::remove(folder / "output", failed);
    std::vector<std::string> words{"/bin/sh", "-c",
                                   "mkfifo output; exec 9<>output; echo $$ > pid; exec \"$0\" "
                                   "\"$@\" >&9 " +
                                       number + ">&-"};
    words.insert(words.end(), program.begin(), program.end());
    const test::NodeProgram running(folder.path(), words);
    constexpr std::uint64_t kLongNs = 30'000'000'000;
    for (const base::Stopwatch watch; watch.elapsed_ns() < kLongNs;) {
      std::this_thread::yield();
      const std::string pid = content("pid").substr(0, content("pid").find('\n'));
      const fs::path process = fs::path("/proc") / pid;
      if (pid.empty() || fs::read_symlink(process / "exe", failed) != program.front()) continue;
      if (fs::read_symlink(process / "fd" / number, failed) == "/dev/null") return true;
    }
    return false;
  }

  /// Runs a command line in which $E is the program and $A the node's address. Keeps its output.
  int run(const std::string& line) {
    const std::string script = "cd '" + folder.string() + "' && E='" ESPALIER_PROGRAM "' && A='" +
                               address + "' && { " + line + "\n} > out 2> err";
    const int status = std::system(script.c_str());
    out = content("out");
    err = content("err");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string out;
  std::string err;
};

// A file that takes the number of a closed standard descriptor receives the output: a node's memory
// must not take it.
TEST_F(Serve, ServesWithoutStandardDescriptors) {
  for (const std::string closed : {"<&-", ">&-", "2>&-", "<&- >&- 2>&-"}) {
    std::vector<std::string> words{"/bin/sh", "-c", "echo $$ > pid; exec \"$0\" \"$@\" " + closed};
    for (const std::string& word : serve({"--map", "default"})) words.push_back(word);
    test::NodeProgram node(folder.path(), words);
    ASSERT_EQ(node.next_message(), "READY=1") << closed;
    const fs::path open = "/proc/" + content("pid").substr(0, content("pid").find('\n')) + "/fd";
    for (int number = 0; number <= 2; ++number) {
      const std::string target = fs::read_symlink(open / std::to_string(number)).string();
      EXPECT_THAT(target, ::testing::Not(HasSubstr("memfd"))) << closed << ": " << number;
      EXPECT_THAT(target, ::testing::Not(HasSubstr("socket"))) << closed << ": " << number;
    }
    EXPECT_EQ(run("$E put --at $A apple red"), 0) << err;
    node.send(SIGHUP);  // which it cannot report
    EXPECT_EQ(run("$E export --at $A"), 0) << err;
    EXPECT_EQ(out, "apple\tred\n");
    node.send(SIGTERM);
    EXPECT_EQ(node.wait(), 0) << closed;
  }
}

// Data that was acknowledged, after a SIGKILL; the log reports how much there was.
TEST_F(Serve, WithADataFolderItHasAgainWhatItHadWhenItWasKilled) {
  const auto words = serve({"--data", folder / "data"});
  {
    test::NodeProgram node(folder.path(), words);
    ASSERT_EQ(node.next_message(), "READY=1") << content("log");
    EXPECT_EQ(run("$E put --at $A apple red && $E put --at $A pear green"), 0) << err;
    EXPECT_EQ(run("$E erase --at $A pear && $E map create --at $A other"), 0) << err;
    node.send(SIGKILL);
    EXPECT_EQ(node.wait(), -SIGKILL);
  }
  EXPECT_EQ(run("$E check --data data"), 0) << err;
  EXPECT_THAT(out, HasSubstr("map 'default': 1 entry, "));
  EXPECT_THAT(out, HasSubstr("map 'other': 0 entries, "));
  EXPECT_EQ(run("$E log dump --data data"), 0) << err;
  EXPECT_THAT(out, HasSubstr(" map 'default' (1): erase 'pear', version "));
  test::NodeProgram node(folder.path(), words);
  ASSERT_EQ(node.next_message(), "READY=1") << content("log");
  EXPECT_THAT(content("log"), HasSubstr("data folder '" + (folder / "data").string() + "': "));
  EXPECT_EQ(run("$E export --at $A && $E map list --at $A"), 0) << err;
  EXPECT_EQ(out, "apple\tred\ndefault\nother\n");
  // Of a second node the folder is not.
  EXPECT_NE(run("$E serve --node-socket two --memory-limit 64MiB --data data"), 0);
  EXPECT_THAT(err, HasSubstr("another process uses it"));
  EXPECT_EQ(run("$E check --data data"), 1);
  EXPECT_THAT(err, HasSubstr("another process uses the data folder 'data'"));
  node.send(SIGTERM);
  EXPECT_EQ(node.wait(), 0);
}

TEST_F(Serve, ADamagedFolderIsAcceptedWithItsLossAlone) {
  std::vector<std::string> words = serve({"--data", folder / "data"});
  {
    test::NodeProgram node(folder.path(), words);
    ASSERT_EQ(node.next_message(), "READY=1") << content("log");
    EXPECT_EQ(run("$E put --at $A apple red && $E put --at $A pear green"), 0) << err;
    node.send(SIGTERM);
    EXPECT_EQ(node.wait(), 0);
  }
  // In the first record.
  ASSERT_EQ(run("printf x | dd of=data/log/log-0000000000000001.seg bs=1 seek=4170 conv=notrunc"),
            0);
  EXPECT_EQ(run("$E check --data data"), 1);
  EXPECT_THAT(err, HasSubstr("records that were durable are missing"));
  EXPECT_THAT(err, HasSubstr("offset 4096, sequence 1"));
  EXPECT_THAT(err, HasSubstr("--accept-loss-from 1"));
  EXPECT_NE(run("$E serve --node-socket two --memory-limit 64MiB --data data"), 0);
  EXPECT_THAT(err, HasSubstr("espalier check --data DIR"));
  EXPECT_NE(run("$E serve --node-socket two --data data --accept-loss-from 1 --chain a "
                "--chain-members chain"),
            0);
  EXPECT_THAT(err, HasSubstr("a member of a chain that has lost records is none any more"));
  words.insert(words.end(), {"--accept-loss-from", "1"});
  {
    test::NodeProgram node(folder.path(), words);
    ASSERT_EQ(node.next_message(), "READY=1") << content("log");
    EXPECT_THAT(content("log"), HasSubstr("from sequence 1 on is lost"));
    EXPECT_EQ(run("$E export --at $A"), 0) << err;
    EXPECT_EQ(out, "");
    node.send(SIGTERM);
    EXPECT_EQ(node.wait(), 0);
  }
  test::NodeProgram again(folder.path(), words);
  EXPECT_EQ(again.wait(), 1);
  EXPECT_THAT(content("log"), HasSubstr("start it without --accept-loss-from"));
  EXPECT_EQ(run("$E check --data data"), 0) << err;
}

TEST_F(Serve, CommandsWithoutStandardDescriptors) {
  // Output to a closed descriptor is a failure, like a full disk.
  EXPECT_NE(run("$E --version >&-"), 0);
  EXPECT_EQ(run("$E --version <&-"), 0) << err;
  EXPECT_EQ(run("$E --version 2>&-"), 0) << err;
}

// So it is with each program that people call. These work for long, without a word.
TEST_F(Serve, LineitemOpensStandardDescriptorsToo) {
  for (const std::string closed : {"0", "2"}) {
    EXPECT_TRUE(opens_null(closed, {ESPALIER_LINEITEM, "100"})) << closed;
  }
}

using ServeSlow = Serve;

TEST_F(ServeSlow, BenchmarksOpenStandardDescriptorsToo) {
  const std::string program = fs::path(ESPALIER_PROGRAM).parent_path() / "espalier-bench";
  for (const std::string closed : {"0", "2"}) {
    EXPECT_TRUE(opens_null(closed, {program, "ycsb", "--target", "embedded", "--keys", "1000",
                                    "--ops", "4000000000", "--probe-rounds", "0"}))
        << closed;
  }
}

TEST_F(Serve, ServesCommandsUntilItIsTerminated) {
  test::NodeProgram node(folder.path(), serve({"--map", "default", "--map", "words"}));
  ASSERT_EQ(node.next_message(), "READY=1") << content("log");
  struct stat socket{};
  ASSERT_EQ(::stat((folder / "s").c_str(), &socket), 0);
  EXPECT_EQ(socket.st_mode & 0777U, 0600U);

  EXPECT_EQ(run("seq 100000 | $E load --at $A --map words --json -"), 0) << err;
  EXPECT_THAT(out, HasSubstr("\"items\":100000,"));
  EXPECT_EQ(run("$E get --at $A --map words 4711 x"), 1);
  EXPECT_EQ(out, "4711\t\n");
  EXPECT_EQ(run("ESPALIER_AT=$A $E scan --map words --keys-only --prefix 9999"), 0) << err;
  EXPECT_EQ(out, "9999\n99990\n99991\n99992\n99993\n99994\n99995\n99996\n99997\n99998\n99999\n");
  EXPECT_EQ(run("$E put --at $A apple 1.20 && $E export --at $A"), 0) << err;
  EXPECT_EQ(out, "inserted 1, 1 item in all\napple\t1.20\n");
  EXPECT_EQ(run("$E ping --at $A --count 10 && $E map list --at $A"), 0) << err;
  EXPECT_THAT(out, HasSubstr("10 round trips: min "));
  EXPECT_THAT(out, HasSubstr("\ndefault\nwords\n"));

  node.send(SIGTERM);
  EXPECT_EQ(node.next_message(), "STOPPING=1");
  EXPECT_EQ(node.wait(), 0) << content("log");
  EXPECT_FALSE(fs::exists(folder / "s"));
  EXPECT_THAT(content("log"), HasSubstr("listening at " + address + ", permissions 0600"));
  EXPECT_THAT(content("log"), HasSubstr("memory: at most 64.0 MiB; "));
  EXPECT_THAT(content("log"), HasSubstr("map 'words': nodes of 8KiB"));
  EXPECT_THAT(content("log"), HasSubstr("SIGTERM: stopping"));
  EXPECT_EQ(run("$E get --at $A apple"), 1);
  EXPECT_THAT(err, HasSubstr("no node listens at " + address));
}

// Every command with --at uses the same client, so a few stand for all.
TEST_F(Serve, ServesCommandsOverFabrics) {
  test::NodeProgram node(folder.path(), serve({"--map", "words", "--node-fabric",
                                               "shm:fabric roce://127.0.0.1:0/1 roce+memif:packets "
                                               "ofi://tcp/127.0.0.1:0"}));
  ASSERT_EQ(node.next_message(), "READY=1") << content("log");
  const std::string log = content("log");
  std::vector<std::string> addresses;
  for (const char* const begin : {"shm:", "roce://", "roce+memif:", "ofi://"}) {
    const std::size_t at = log.find(std::string("listening at ") + begin);
    ASSERT_NE(at, std::string::npos) << log;
    const std::size_t from = at + std::string("listening at ").size();
    addresses.push_back(log.substr(from, log.find(": ", from) - from));
  }
  int items = 20000;
  for (const std::string& fabric : addresses) {
    SCOPED_TRACE(fabric);
    address = fabric;
    EXPECT_EQ(run("seq 20000 | $E load --at $A --map words --json -"), 0) << err;
    EXPECT_THAT(out, HasSubstr("\"items\":" + std::to_string(items) + ','));
    EXPECT_EQ(run("$E get --at $A --map words 4711 x"), 1);
    EXPECT_EQ(out, "4711\t\n");
    EXPECT_EQ(run("ESPALIER_AT=$A $E scan --map words --keys-only --prefix 1999 | wc -l"), 0);
    EXPECT_EQ(out, "11\n") << err;
    EXPECT_EQ(run("$E put --at $A --map words \"by $A\" 1"), 0) << err;
    EXPECT_EQ(run("$E export --at $A --map words | wc -l"), 0);
    EXPECT_EQ(out, std::to_string(++items) + '\n') << err;
    EXPECT_EQ(run("$E ping --at $A --count 10 && $E map list --at $A"), 0) << err;
    EXPECT_THAT(out, HasSubstr("10 round trips: min "));
    EXPECT_THAT(out, testing::EndsWith("\nwords\n"));
  }
  node.send(SIGTERM);
  EXPECT_EQ(node.wait(), 0) << content("log");
  EXPECT_EQ(run("$E get --at " + addresses.front() + " --map words 1"), 1);
  EXPECT_THAT(err, HasSubstr(addresses.front()));
}

TEST_F(Serve, AClientThatWaitsIsToldThatItStops) {
  test::NodeProgram node(folder.path(), serve());
  ASSERT_EQ(node.next_message(), "READY=1") << content("log");
  auto store = Store::connect(address);
  ASSERT_TRUE(store) << message(store.error());
  const auto map = store->open_map("default");
  ASSERT_TRUE(map);
  // It asks without a pause, so one request is in flight when the node stops.
  std::thread stopper([&] { node.send(SIGINT); });
  Result<std::optional<Found>> answer = map->get("k");
  while (answer) answer = map->get("k");
  stopper.join();
  EXPECT_EQ(answer.error().code, Code::connection_lost) << message(answer.error());
  EXPECT_EQ(node.wait(), 0) << content("log");
  EXPECT_THAT(content("log"), HasSubstr("SIGINT: stopping; 1 client is told"));
}

TEST_F(Serve, ASecondSignalEndsItAtOnce) {
  test::NodeProgram node(folder.path(), serve());
  ASSERT_EQ(node.next_message(), "READY=1") << content("log");
  node.fill_messages();  // so that it hangs while it stops
  node.send(SIGTERM);
  while (!content("log").contains("stopping")) std::this_thread::yield();
  node.send(SIGTERM);
  EXPECT_EQ(node.wait(), -SIGTERM) << content("log");
}

TEST_F(Serve, SaysWhyItCannotStart) {
  const std::string serve = "$E serve --memory-limit 64MiB --node-socket ";
  EXPECT_EQ(run(serve + "none/s"), 1);
  EXPECT_EQ(err,
            "espalier: error: the folder 'none' of the socket does not exist\n"
            "  Make it, or give another path: --node-socket PATH.\n");
  EXPECT_EQ(run("echo data > file; " + serve + "file"), 1);
  EXPECT_THAT(err, HasSubstr("'file' exists and is no socket of a node"));
  EXPECT_EQ(content("file"), "data\n");
  EXPECT_EQ(run("$E serve --node-cores none --metrics-port -1"), 2);
  EXPECT_THAT(err, HasSubstr("node.cores cannot be 'none'"));
  EXPECT_THAT(err, HasSubstr("metrics.port cannot be '-1'"));
  EXPECT_NE(run("mkfifo fifo; $E serve --config fifo"), 0);  // without a writer
  EXPECT_THAT(err, HasSubstr("it is a FIFO"));

  test::NodeProgram node(folder.path(), this->serve());
  ASSERT_EQ(node.next_message(), "READY=1") << content("log");
  EXPECT_EQ(run(serve + "s"), 1);
  EXPECT_THAT(err, HasSubstr("a node listens at s already"));
  EXPECT_EQ(run("$E get --at $A k"), 1);
  EXPECT_EQ(err, "espalier: not found: k\n");
}

TEST_F(Serve, ReadsItsConfigurationFromAFile) {
  std::ofstream(folder / "n.toml") << "[node]\nsocket = \"s\"\nsocket_mode = \"0660\"\n"
                                      "[memory]\nlimit = \"64MiB\"\nhuge_pages = false\n"
                                      "[log]\nlevel = \"error\"\n";
  test::NodeProgram node(folder.path(), {ESPALIER_PROGRAM, "serve", "--config", "n.toml"});
  ASSERT_EQ(node.next_message(), "READY=1") << content("log");
  struct stat socket{};
  ASSERT_EQ(::stat((folder / "s").c_str(), &socket), 0);
  EXPECT_EQ(socket.st_mode & 0777U, 0660U);
  EXPECT_EQ(content("log"), "");
  EXPECT_EQ(run("$E serve --config n.toml --print-config"), 0);
  EXPECT_THAT(out, HasSubstr("socket_mode = \"0660\"                  # file n.toml:3\n"));
}

// A user that may no longer connect loses its sessions, new and old.
TEST_F(Serve, ANarrowedSocketModeEndsTheSessionsOfOthers) {
  constexpr uid_t kNobodyUid = 65534;
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  ::chmod(folder.path().c_str(), 0711);
  const auto write = [&](const std::string& mode) {
    std::ofstream(folder / "n.toml") << "[node]\nsocket = \"s\"\nsocket_mode = \"" << mode
                                     << "\"\n[memory]\nlimit = \"64MiB\"\nhuge_pages = false\n";
  };
  write("0666");
  test::NodeProgram node(folder.path(), {ESPALIER_PROGRAM, "serve", "--config", "n.toml"});
  ASSERT_EQ(node.next_message(), "READY=1") << content("log");
  test::Child other([&](test::Line& line) {
    if (::seteuid(kNobodyUid) != 0) return 2;
    const auto store = Store::connect(address);
    if (!store) return 3;
    const auto map = store->open_map("default");
    if (!map || !map->get("a") || !line.send("in")) return 4;
    while (map->get("a")) {
    }
    return Store::connect(address) ? 5 : 0;
  });
  std::string word;
  ASSERT_TRUE(other.line().receive(word));
  write("0600");
  node.send(SIGHUP);
  EXPECT_THAT(node.next_message().value_or(""), StartsWith("RELOADING=1"));
  EXPECT_EQ(node.next_message(), "READY=1") << content("log");
  EXPECT_EQ(other.wait(), 0) << content("log");
  EXPECT_EQ(run("$E put --at $A apple 1.20"), 0) << err;
}

TEST_F(Serve, AHangupMakesItReadItsConfigurationAgain) {
  const std::string fixed = "[memory]\nlimit = \"64MiB\"\nhuge_pages = false\n";
  const auto write = [&](const std::string& text) {
    std::ofstream(folder / "n.toml") << fixed << text;
  };
  write("[node]\nsocket = \"s\"\n[log]\nlevel = \"info\"\n");
  test::NodeProgram node(folder.path(), {ESPALIER_PROGRAM, "serve", "--config", "n.toml"});
  ASSERT_EQ(node.next_message(), "READY=1") << content("log");
  EXPECT_EQ(run("$E put --at $A apple 1.20"), 0) << err;
  const auto reload = [&] {
    node.send(SIGHUP);
    EXPECT_THAT(node.next_message().value_or(""), StartsWith("RELOADING=1\nMONOTONIC_USEC="));
    EXPECT_EQ(node.next_message(), "READY=1") << content("log");
  };

  write(
      "[node]\nsocket = \"t\"\nsocket_mode = \"0660\"\n[log]\nlevel = \"debug\"\n"
      "[[map]]\nname = \"words\"\n");
  reload();
  EXPECT_THAT(content("log"), HasSubstr("log.level was \"info\" and is \"debug\" from now on"));
  EXPECT_THAT(content("log"),
              HasSubstr("node.socket stays \"s\": to make it \"t\" takes a restart"));
  EXPECT_THAT(content("log"), HasSubstr("map 'words' is not made: espalier map create"));
  EXPECT_THAT(content("log"), HasSubstr("map 'default' stays: espalier map drop"));
  struct stat socket{};
  ASSERT_EQ(::stat((folder / "s").c_str(), &socket), 0);
  EXPECT_EQ(socket.st_mode & 0777U, 0660U);

  write("[node]\nsocket = \"s\"\ncores = 65\n[log]\nlevel = \"error\"\n");
  reload();
  EXPECT_THAT(content("log"), HasSubstr("error: file n.toml:6: node.cores cannot be 65; "));
  EXPECT_THAT(content("log"), HasSubstr("all settings stay as they were"));

  write("[node]\nsocket = \"s\"\nsocket_mode = \"0660\"\n[log]\nlevel = \"debug\"\n");
  reload();
  EXPECT_THAT(content("log"), HasSubstr("the configuration is read again; nothing differs"));
  EXPECT_EQ(run("$E get --at $A apple"), 0) << err;  // it is still there
  EXPECT_EQ(out, "1.20\n");
  node.send(SIGTERM);
  EXPECT_EQ(node.next_message(), "STOPPING=1");
  EXPECT_EQ(node.wait(), 0) << content("log");
}

}  // namespace
}  // namespace espalier

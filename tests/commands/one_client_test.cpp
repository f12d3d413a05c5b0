// SPDX-License-Identifier: Apache-2.0
// What one user of a node's program can do to the others, with commands and sockets alone.
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <memory>
#include <new>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/temporary_folder.hpp"
#include "base/unix_address.hpp"
#include "espalier/map.hpp"
#include "memory/shared_memory.hpp"
#include "tests/support/child.hpp"
#include "tests/support/node_program.hpp"

namespace espalier {
namespace {

/// A command that runs beside the test, and writes into a pipe of which nothing is taken yet.
class Beside {
 public:
  explicit Beside(const std::string& line) : pipe_(::popen(line.c_str(), "r"), &::pclose) {}

  /// Waits until it has written something. Returns false if it has ended with nothing.
  [[nodiscard]] bool has_begun() const {
    const int first = ::fgetc(pipe_.get());
    return first != EOF && ::ungetc(first, pipe_.get()) == first;
  }
  /// Takes all of it. Returns how many lines it wrote; nothing: it failed.
  std::size_t lines() {
    std::size_t count = 0;
    std::array<char, 65536> some{};
    while (const std::size_t got = ::fread(some.data(), 1, some.size(), pipe_.get())) {
      count += static_cast<std::size_t>(std::count(some.begin(), some.begin() + got, '\n'));
    }
    return ::pclose(pipe_.release()) == 0 ? count : 0;
  }

 private:
  std::unique_ptr<FILE, int (*)(FILE*)> pipe_;
};

constexpr uid_t kNobody = 65534;

class OneClient : public ::testing::Test {
 protected:
  OneClient() { ::chmod(folder_.path().c_str(), 0711); }

  [[nodiscard]] std::string socket() const { return folder_ / "s"; }
  [[nodiscard]] std::string command(const std::string& words) const {
    return "exec '" ESPALIER_PROGRAM "' " + words + " --at unix:" + socket();
  }
  int run(const std::string& words) const {
    return ::system((command(words) + " > '" + (folder_ / "out").string() + "'").c_str());
  }

  base::TemporaryFolder folder_;
  test::NodeProgram node_{
      folder_.path(),
      {ESPALIER_PROGRAM, "serve", "--node-socket", socket(), "--node-socket-mode", "0666",
       "--memory-limit", "64MiB", "--memory-huge-pages", "no"}};
};

// As many queries run at a time as have a reader each that stops. Others are answered meanwhile, so
// none of those has waited for so long that it was ended.
TEST_F(OneClient, ReadersThatStopLeaveQueriesToOthers) {
  constexpr std::size_t kRows = 12'500;
  constexpr std::size_t kReaders = 64;
  ASSERT_EQ(node_.next_message(), "READY=1");
  {
    std::ofstream rows(folder_ / "rows.csv");
    rows << "id,words\n";
    for (std::size_t i = 0; i < kRows; ++i) rows << i << ',' << std::string(72, 'x') << '\n';
  }
  ASSERT_EQ(run("table create t 'id i32 not null, words char(72) not null'"), 0);
  ASSERT_EQ(run("table load t '" + (folder_ / "rows.csv").string() + "'"), 0);
  std::vector<Beside> readers;
  for (std::size_t i = 0; i < kReaders; ++i) {
    readers.emplace_back(command("table query --quiet --format csv 'select * from t'"));
  }
  for (const Beside& reader : readers) ASSERT_TRUE(reader.has_begun());
  EXPECT_EQ(run("table query --quiet 'select count(*) from t'"), 0);
  for (Beside& reader : readers) EXPECT_EQ(reader.lines(), kRows + 1);
}

// More connections than a node keeps of those who have not said anything yet.
TEST_F(OneClient, SilentConnectionsOfOneUserLeaveRoomForTheOperator) {
  constexpr std::size_t kConnections = 1500;
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  ASSERT_EQ(node_.next_message(), "READY=1");
  test::Child other([&](test::Line& line) {
    if (::seteuid(kNobody) != 0) return 2;
    const auto address = base::UnixAddress::file(socket());
    std::vector<memory::Descriptor> sockets;
    for (std::size_t i = 0; i < kConnections; ++i) {
      sockets.emplace_back(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
      if (::connect(sockets.back().number(), address->get(), address->bytes()) != 0) break;
    }
    std::string end;
    return line.send("connected") && line.receive(end) ? 0 : 3;
  });
  std::string word;
  ASSERT_TRUE(other.line().receive(word));
  EXPECT_EQ(run("put a 1"), 0);
  EXPECT_EQ(run("stats"), 0);
  ASSERT_TRUE(other.line().send("end"));
  EXPECT_EQ(other.wait(), 0);
}

// Two hundred counts in flight of one user: as many of them as end let another one's gets through
// between, not one get for all of them.
TEST_F(OneClient, CountsLeaveGetsToOthers) {
  constexpr std::size_t kCounts = 200;
  constexpr std::size_t kItems = 20'000;
  constexpr std::uint64_t kRounds = 5;
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  ASSERT_EQ(node_.next_message(), "READY=1");
  void* const shared = ::mmap(nullptr, sizeof(std::atomic<std::uint64_t>), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& counted = *new (shared) std::atomic<std::uint64_t>(0);
  test::Child other([&](test::Line& line) {
    std::string word;
    if (!line.receive(word) || ::seteuid(kNobody) != 0) return 2;
    const auto store = Store::connect("unix:" + socket());
    if (!store) return 3;
    const auto map = store->open_map("default");
    if (!map || !line.send("begun")) return 3;
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kCounts; ++i) {
      threads.emplace_back([&](const std::stop_token& stop) {
        while (!stop.stop_requested() && map->count("", "") == kItems) ++counted;
      });
    }
    return line.receive(word) ? 0 : 4;
  });
  {
    std::ofstream items(folder_ / "items");
    for (std::size_t i = 0; i < kItems; ++i) items << "key" << i << '\n';
  }
  ASSERT_EQ(run("load '" + (folder_ / "items").string() + "'"), 0);
  const auto store = Store::connect("unix:" + socket());
  ASSERT_TRUE(store) << message(store.error());
  const auto map = store->open_map("default");
  ASSERT_TRUE(map) << message(map.error());
  std::string word;
  ASSERT_TRUE(other.line().send("begin") && other.line().receive(word));
  while (counted < kCounts) std::this_thread::yield();
  std::uint64_t gets = 0;
  for (const std::uint64_t end = counted + kRounds * kCounts; counted < end; ++gets) {
    ASSERT_TRUE(map->get("key7"));
  }
  EXPECT_GT(gets, 10 * kRounds) << "while " << kRounds * kCounts << " counts ended";
  ASSERT_TRUE(other.line().send("end"));
  EXPECT_EQ(other.wait(), 0);
}

}  // namespace
}  // namespace espalier

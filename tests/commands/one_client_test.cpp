// SPDX-License-Identifier: Apache-2.0
// What one user of a node's program can do to other users, with commands and sockets alone.
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
#include "espalier/query.hpp"
#include "espalier/table.hpp"
#include "memory/shared_memory.hpp"
#include "tests/support/child.hpp"
#include "tests/support/node_program.hpp"

namespace espalier {
namespace {

/// A background command that writes into a pipe which is not read yet.
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

/// A count that this process and its children share.
std::atomic<std::uint64_t>& shared_count() {
  void* const shared = ::mmap(nullptr, sizeof(std::atomic<std::uint64_t>), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::bad_alloc();
  return *new (shared) std::atomic<std::uint64_t>(0);
}

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

class OneClient : public ::testing::Test {
 protected:
  OneClient() { ::chmod(folder_.path().c_str(), 0711); }

  [[nodiscard]] std::string socket() const { return folder_ / "s"; }
  [[nodiscard]] static std::string command(const std::string& words, const std::string& socket) {
    return "exec '" ESPALIER_PROGRAM "' " + words + " --at unix:" + socket;
  }
  [[nodiscard]] std::string command(const std::string& words) const {
    return command(words, socket());
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

// As many concurrent queries as there are stopped readers. Others are answered meanwhile, so none
// of those has timed out.
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

// More connections than a node keeps pending.
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
  auto& counted = shared_count();
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

// Patterns whose beginning matches each text at each of its places. Such a query takes time in
// proportion to the texts, and is cut into steps: many queries of another client complete
// meanwhile. If a step took some thousand rows at any cost, only one or two would.
TEST_F(OneClient, LikesOfManyPlacesLeaveQueriesToOthers) {
  constexpr std::size_t kRows = 4096;
  constexpr std::uint64_t kLikes = 3;
  constexpr std::uint64_t kBetween = 5;
  ASSERT_EQ(node_.next_message(), "READY=1");
  auto& liked = shared_count();
  test::Child greedy([&](test::Line& line) {
    std::string word;
    if (!line.receive(word)) return 2;
    const auto store = Store::connect("unix:" + socket());
    if (!store) return 3;
    const auto texts = store->open_table("texts");
    if (!texts) return 3;
    const std::string any = "%" + repeated("_", 500) + "b%";
    const std::string every_second = "%" + repeated("a_", 400) + "b%";
    auto query = texts->query();
    query.where(col("a").like(any) || col("b").like(every_second) || col("c").like(every_second) ||
                col("d").like(every_second));
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; ++i) {  // so that one always waits
      threads.emplace_back([&](const std::stop_token& stop) {
        for (; !stop.stop_requested(); ++liked) {
          const auto found = query.run();
          if (!found || found->size() != 0) return;
        }
      });
    }
    return line.receive(word) ? 0 : 4;
  });
  {
    std::ofstream rows(folder_ / "rows.csv");
    rows << "id,a,b,c,d\n";
    const std::string texts = repeated("," + std::string(1000, 'a'), 4) + "\n";
    for (std::size_t i = 0; i < kRows; ++i) rows << i << texts;
    std::ofstream(folder_ / "few.csv") << "id\n7\n";
  }
  ASSERT_EQ(run("table create texts 'id i32 not null, a text(1000), b text(1000), c text(1000), "
                "d text(1000)'"),
            0);
  ASSERT_EQ(run("table load texts '" + (folder_ / "rows.csv").string() + "'"), 0);
  ASSERT_EQ(run("table create few 'id i32 not null'"), 0);
  ASSERT_EQ(run("table load few '" + (folder_ / "few.csv").string() + "'"), 0);
  const auto store = Store::connect("unix:" + socket());
  ASSERT_TRUE(store) << message(store.error());
  const auto few = store->open_table("few");
  ASSERT_TRUE(few) << message(few.error().error);
  ASSERT_TRUE(greedy.line().send("begin"));
  while (liked == 0) std::this_thread::yield();
  std::uint64_t queries = 0;
  for (const std::uint64_t end = liked + kLikes; liked < end; ++queries) {
    const auto found = few->query().run();
    ASSERT_TRUE(found && found->size() == 1);
  }
  EXPECT_GT(queries, kBetween * kLikes) << "while " << kLikes << " others ended";
  ASSERT_TRUE(greedy.line().send("end"));
  EXPECT_EQ(greedy.wait(), 0);
}

// The memory of an unread scan is bounded by a share of a small node's memory, and expires.
TEST_F(OneClient, AnExportThatStopsLeavesMemoryToPutsAndErases) {
  constexpr std::size_t kItems = 2000;
  constexpr std::size_t kBytes = 10'000;  // times the items: a third of the node's memory
  constexpr int kRounds = 4;
  ASSERT_EQ(node_.next_message(), "READY=1");
  const auto store = Store::connect("unix:" + socket());
  ASSERT_TRUE(store) << message(store.error());
  auto map = store->open_map("default");
  ASSERT_TRUE(map) << message(map.error());
  const auto put_all = [&](char letter) {
    for (std::size_t i = 0; i < kItems; ++i) {
      const auto put = map->put("key" + std::to_string(i), std::string(kBytes, letter));
      ASSERT_TRUE(put) << i << letter << ": " << message(put.error());
    }
  };
  put_all('a');
  Beside stopped(command("export") + " 2> /dev/null");
  ASSERT_TRUE(stopped.has_begun());
  for (int round = 1; round <= kRounds; ++round) put_all(static_cast<char>('a' + round));
  for (std::size_t i = 0; i < kItems; ++i) {
    const auto erased = map->erase("key" + std::to_string(i));
    ASSERT_TRUE(erased) << i << ": " << message(erased.error());
  }
  EXPECT_EQ(stopped.lines(), 0u) << "it fails: what it was to read has expired";
}

// A user that may write to a socket's folder can impersonate the node. The impostor gets nothing
// from a client that has a secret.
TEST_F(OneClient, AnImpostorInAnOpenFolderIsNotSpokenTo) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  ASSERT_EQ(node_.next_message(), "READY=1");
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0777), 0);
  const std::string path = folder_ / "impostor";
  test::Child impostor([&](test::Line& line) {
    if (::seteuid(kNobody) != 0) return 2;
    const auto address = base::UnixAddress::file(path);
    const memory::Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (::bind(socket.number(), address->get(), address->bytes()) != 0) return 3;
    if (::listen(socket.number(), 1) != 0 || !line.send("listens")) return 3;
    for (std::string word; line.receive(word);) {
      const memory::Descriptor client(::accept(socket.number(), nullptr, nullptr));
      std::array<char, 256> packet{};
      const bool heard = ::recv(client.number(), packet.data(), packet.size(), 0) > 0;
      if (!line.send(heard ? "something" : "nothing")) return 4;
    }
    return 0;
  });
  const std::string secret = folder_ / "secret";
  std::ofstream(secret) << "alice write 0" << std::string(63, 'b') << '\n';
  ASSERT_EQ(::chmod(secret.c_str(), 0600), 0);
  std::string word;
  ASSERT_TRUE(impostor.line().receive(word));
  const auto heard_of = [&](const std::string& options) {
    EXPECT_TRUE(impostor.line().send("accept"));
    const std::string line = command("get a --secret-file '" + secret + "'" + options, path);
    EXPECT_NE(::system((line + " 2> /dev/null").c_str()), 0);
    EXPECT_TRUE(impostor.line().receive(word));
    return word;
  };
  EXPECT_EQ(heard_of(""), "nothing");
  EXPECT_EQ(heard_of(" --node-user 65534"), "something") << "as whom the client looks for it";
}

}  // namespace
}  // namespace espalier

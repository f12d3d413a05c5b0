// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "base/temporary_folder.hpp"
#include "base/unix_address.hpp"
#include "dataplane/control_client.hpp"
#include "dataplane/control_server.hpp"

namespace espalier::dataplane {
namespace {

constexpr std::string_view kProgram =
    "espalier-switch 1\nmap 1 2\nespalier-tables 1\nroot 16 4 0\nway 40>0\nset\nnode 0 5 40\n";
constexpr std::string_view kNothing = "espalier-switch 1\n";

/// One map of this keyed key, whose only way has this address.
std::string map_at(const std::string& key, const std::string& address) {
  return "map " + key + " 2\nespalier-tables 1\nroot 16 4 0\nway " + address + "\n";
}

/// A control that is served by a thread of its own.
class SwitchControlConcurrency : public ::testing::Test {
 protected:
  SwitchControlConcurrency()
      : control_(function_, [](std::string& text) { text += "frames 5\n"; }),
        path_((folder_ / "control").string()),
        server_(*ControlServer::open(path_, control_, kNeverSilentNs)),
        thread_([this] { server_->run(); }) {}
  static constexpr std::uint64_t kNeverSilentNs = std::uint64_t{1} << 60;
  /// Another one, to which every peer is silent.
  void serve_impatiently() {
    stop();
    server_.reset();
    server_ = *ControlServer::open(path_, control_, 0);
    thread_ = std::thread([this] { server_->run(); });
  }
  memory::Descriptor connect_bare() {
    const auto address = *base::UnixAddress::file(path_);
    memory::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket.number(), address.get(), address.bytes()), 0);
    return socket;
  }
  /// Whether so many maps are there, soon.
  bool has_maps(const std::string& maps) {
    ControlClient client = connect();
    for (int i = 0; i < 1'000'000; ++i) {
      if (number(*client.ask("status"), "maps") == maps) return true;
      std::this_thread::yield();
    }
    return false;
  }
  ~SwitchControlConcurrency() override { stop(); }
  void stop() {
    server_->stop();
    if (thread_.joinable()) thread_.join();
  }
  ControlClient connect() { return *ControlClient::connect(path_); }
  static std::string number(const std::string& status, const std::string& name) {
    const std::size_t at = status.find(name + " ");
    if (at == std::string::npos) return "none";
    const std::size_t begin = at + name.size() + 1;
    return status.substr(begin, status.find('\n', begin) - begin);
  }

  base::TemporaryFolder folder_;
  InstalledFunction function_;
  SwitchControl control_;
  std::string path_;
  std::unique_ptr<ControlServer> server_;
  std::thread thread_;
};

TEST_F(SwitchControlConcurrency, TablesAreInstalledChangedAndTold) {
  ControlClient client = connect();
  EXPECT_EQ(*client.ask("program"), "espalier-switch 1\n");
  EXPECT_EQ(*client.ask("install", kProgram), "");
  EXPECT_EQ(*client.ask("program"), kProgram);
  EXPECT_EQ(*client.ask("change", "change 1 set 0 0 1 80\n"), "");
  EXPECT_NE(client.ask("program")->find("node 0 5 80"), std::string::npos);
  const std::string status = *client.ask("status");
  EXPECT_EQ(number(status, "maps"), "1");
  EXPECT_EQ(number(status, "ranges"), "1");
  EXPECT_EQ(number(status, "nodes"), "1");
  EXPECT_EQ(number(status, "programs_installed"), "1");
  EXPECT_EQ(number(status, "entries_changed"), "1");
  EXPECT_EQ(number(status, "generation"), "2");
  EXPECT_EQ(number(status, "frames"), "5");
}

TEST_F(SwitchControlConcurrency, WhatIsWrongIsRefusedInWordsAndChangesNothing) {
  ControlClient client = connect();
  ASSERT_TRUE(client.ask("install", kProgram));
  const auto refused = [&](std::string_view word, std::string_view body) {
    const auto answer = client.ask(word, body);
    EXPECT_EQ(answer.error().code, Code::invalid_argument);
    return client.refused();
  };
  EXPECT_EQ(
      refused("install", "espalier-switch 1\nmap 1\n"),
      "line 2: wanted: map KEYED REDIRECT [GENERATION HOPS [NODE]], numbers of 32 bits, of 8, "
      "and of 16");
  EXPECT_EQ(refused("change", "change 1 way 1 0\n"), "line 1: there is no such entry");
  EXPECT_EQ(
      refused("put", "espalier-switch 1\nmap 1\n"),
      "line 2: wanted: map KEYED REDIRECT [GENERATION HOPS [NODE]], numbers of 32 bits, of 8, "
      "and of 16");
  EXPECT_EQ(refused("reboot", ""), "a request is put, install, change, held, program or status");
  EXPECT_EQ(*client.ask("program"), kProgram);
}

TEST_F(SwitchControlConcurrency, WhatIsPutGoesWithItsController) {
  const std::string first_map = map_at("a", "40"), second_map = map_at("b", "80");
  const std::string title(kNothing);
  ControlClient asker = connect();
  ASSERT_TRUE(asker.ask("install", title + map_at("c", "c0")));
  {
    ControlClient first = connect();
    ASSERT_TRUE(first.ask("put", title + first_map));
    {
      ControlClient second = connect();
      ASSERT_TRUE(second.ask("put", title + second_map));
      EXPECT_EQ(*asker.ask("program"), title + map_at("c", "c0") + first_map + second_map);
      EXPECT_EQ(number(*asker.ask("status"), "maps_held"), "2");
      EXPECT_EQ(*second.ask("held"), "1");
      EXPECT_EQ(*asker.ask("held"), "0");
      EXPECT_FALSE(second.ask("change", "change a way 0 80\n"));
      EXPECT_EQ(second.refused(), "another controller fills the tables of the map with the key a");
      EXPECT_FALSE(second.ask("put", title + first_map));
      EXPECT_EQ(second.refused(), "another controller fills the tables of the map with the key a");
      // What it has put before is replaced; so is a map without a holder.
      ASSERT_TRUE(second.ask("put", title + map_at("c", "100")));
      EXPECT_EQ(*asker.ask("program"), title + first_map + map_at("c", "100"));
    }
    EXPECT_TRUE(has_maps("1"));
    EXPECT_EQ(*asker.ask("program"), title + first_map);
    ASSERT_TRUE(first.ask("put", title));
    EXPECT_EQ(*asker.ask("program"), title);
    ASSERT_TRUE(first.ask("put", title + first_map));
    EXPECT_TRUE(first.ask("change", "change a way 0 140\n"));
    ASSERT_TRUE(asker.ask("install", title + second_map)) << "in place of all";
    EXPECT_FALSE(first.ask("change", "change a way 0 40\n"));
    EXPECT_EQ(first.refused(), "line 1: there is no map of this key");
  }
  EXPECT_EQ(*asker.ask("program"), title + second_map) << "which nobody holds";
}

TEST_F(SwitchControlConcurrency, WhoSaysNothingHasLostWhatItHolds) {
  serve_impatiently();
  ControlClient holder = connect();
  ASSERT_TRUE(holder.ask("put", kProgram));
  EXPECT_TRUE(has_maps("0"));
  EXPECT_FALSE(holder.ask("change", "change 1 set 0 0 1 80\n"));
  EXPECT_EQ(holder.refused(), "line 1: there is no map of this key");
}

// Half a request, and an answer that is not taken: neither blocks another connection.
TEST_F(SwitchControlConcurrency, OneWhoIsSlowKeepsNobodyElse) {
  ControlClient client = connect();
  ASSERT_TRUE(client.ask("install", kProgram));
  const memory::Descriptor half = connect_bare();
  ASSERT_EQ(::send(half.number(), "install 100\nespalier", 20, 0), 20);
  const memory::Descriptor deaf = connect_bare();
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += "program\n";
  ASSERT_GT(::send(deaf.number(), many.data(), many.size(), MSG_DONTWAIT), 0);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(*client.ask("program"), kProgram) << i;
  ASSERT_EQ(::send(half.number(), " no program", 11, 0), 11);
  ASSERT_EQ(*client.ask("program"), kProgram);
}

TEST_F(SwitchControlConcurrency, OneWhoWaitsKeepsNobodyElse) {
  ControlClient idle = connect();
  ASSERT_TRUE(idle.ask("status"));
  for (int i = 0; i < 40; ++i) {
    ControlClient client = connect();
    ASSERT_TRUE(client.ask("status")) << i;
  }
  EXPECT_TRUE(idle.ask("status"));
  stop();
  EXPECT_EQ(idle.ask("status").error().code, Code::connection_lost);
}

TEST_F(SwitchControlConcurrency, NonsenseEndsItsConnectionAlone) {
  for (const std::string_view nonsense :
       {std::string_view("install 99999999999999\n"), std::string_view("install x\n"),
        std::string_view("install -1\n"), std::string_view("\0\1\2\n", 4)}) {
    const memory::Descriptor socket = connect_bare();
    ASSERT_EQ(::send(socket.number(), nonsense.data(), nonsense.size(), 0),
              static_cast<ssize_t>(nonsense.size()));
    char answer[200];
    const ssize_t count = ::recv(socket.number(), answer, sizeof answer, 0);
    ASSERT_GT(count, 0);
    EXPECT_EQ(std::string_view(answer, 6), "error ");
  }
  {
    const memory::Descriptor socket = connect_bare();
    const std::string endless(1000, 'a');
    ASSERT_GT(::send(socket.number(), endless.data(), endless.size(), 0), 0);
    char answer[10];
    ASSERT_GT(::recv(socket.number(), answer, sizeof answer, 0), 6);
    EXPECT_EQ(std::string_view(answer, 6), "error ");
  }
  EXPECT_TRUE(connect().ask("status"));
}

TEST(SwitchControl, WithoutASwitchNobodyAnswers) {
  const base::TemporaryFolder folder;
  const auto nobody = ControlClient::connect((folder / "nobody").string());
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, Code::connection_lost);
  EXPECT_EQ(ControlClient::connect("").error().code, Code::invalid_argument);
}

}  // namespace
}  // namespace espalier::dataplane

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "base/temporary_folder.hpp"
#include "base/unix_address.hpp"
#include "dataplane/switch_control.hpp"

namespace espalier::dataplane {
namespace {

constexpr std::string_view kProgram =
    "espalier-switch 1\nmap 1 2\nespalier-tables 1\nroot 16 4 0\nway 40>0\nset\nnode 0 5 40\n";

/// A control that is served by a thread of its own.
class SwitchControlConcurrency : public ::testing::Test {
 protected:
  SwitchControlConcurrency()
      : control_(function_, [](std::string& text) { text += "frames 5\n"; }),
        path_((folder_ / "control").string()),
        server_(*ControlServer::open(path_, control_)),
        thread_([this] { server_->run(); }) {}
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
  EXPECT_EQ(refused("install", "espalier-switch 1\nmap 1\n"),
            "line 2: wanted: map KEYED REDIRECT, two numbers of 32 bits");
  EXPECT_EQ(refused("change", "change 1 way 1 0\n"), "line 1: there is no such entry");
  EXPECT_EQ(refused("reboot", ""), "a request is install, change, program or status");
  EXPECT_EQ(*client.ask("program"), kProgram);
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
  const auto address = *base::UnixAddress::file(path_);
  for (const std::string_view nonsense :
       {std::string_view("install 99999999999999\n"), std::string_view("install x\n"),
        std::string_view("install -1\n"), std::string_view("\0\1\2\n", 4)}) {
    const memory::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(socket.number(), address.get(), address.bytes()), 0);
    ASSERT_EQ(::send(socket.number(), nonsense.data(), nonsense.size(), 0),
              static_cast<ssize_t>(nonsense.size()));
    char answer[200];
    const ssize_t count = ::recv(socket.number(), answer, sizeof answer, 0);
    ASSERT_GT(count, 0);
    EXPECT_EQ(std::string_view(answer, 6), "error ");
  }
  {
    const memory::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(socket.number(), address.get(), address.bytes()), 0);
    const std::string endless(1000, 'a');
    ASSERT_GT(::send(socket.number(), endless.data(), endless.size(), 0), 0);
    char answer[10];
    EXPECT_LE(::recv(socket.number(), answer, sizeof answer, 0), 0);
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

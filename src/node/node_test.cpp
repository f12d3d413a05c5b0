// SPDX-License-Identifier: Apache-2.0
// What a node does to the folder of its socket. Its answers to clients are tested in
// tests/node_calls_test.cpp.
#include "node/node.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

#include "base/temporary_folder.hpp"
#include "base/unix_address.hpp"
#include "node/testing/http_fixture.hpp"

namespace espalier::node {
namespace {

namespace fs = std::filesystem;

class NodeFolder : public testing::Test {
 protected:
  NodeFolder() {
    config_.node.socket = (folder_ / "s").string();
    config_.memory.limit = std::uint64_t{64} << 20;
    config_.memory.huge_pages = false;
  }

  [[nodiscard]] unsigned permissions() const {
    struct stat found {};
    EXPECT_EQ(::stat(config_.node.socket.c_str(), &found), 0);
    return found.st_mode & 07777U;
  }

  base::TemporaryFolder folder_;
  Config config_;
};

TEST_F(NodeFolder, TheSocketHasThePermissionsOfTheConfiguration) {
  {
    const auto node = Node::start(config_);
    ASSERT_TRUE(node) << message(node.error());
    EXPECT_EQ(permissions(), 0600U);
  }
  EXPECT_FALSE(fs::exists(config_.node.socket));
  for (const std::uint32_t mode : {0666U, 0660U}) {  // whatever the umask
    config_.node.socket_mode = mode;
    const auto node = Node::start(config_);
    ASSERT_TRUE(node) << message(node.error());
    EXPECT_EQ(permissions(), mode);
  }
}

TEST_F(NodeFolder, ASecondNodeDoesNotTakeTheSocketOfTheFirst) {
  const auto first = Node::start(config_);
  ASSERT_TRUE(first) << message(first.error());
  const auto second = Node::start(config_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::already_exists);
  EXPECT_TRUE(fs::exists(config_.node.socket));
}

TEST_F(NodeFolder, ASocketThatIsLeftOverIsReplaced) {
  {
    const memory::Descriptor dead(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const auto address = base::UnixAddress::file(config_.node.socket);
    ASSERT_TRUE(address);
    ASSERT_EQ(::bind(dead.number(), address->get(), address->bytes()), 0);
  }
  ASSERT_TRUE(fs::is_socket(config_.node.socket));
  const auto node = Node::start(config_);
  EXPECT_TRUE(node) << message(node.error());
}

// A later node must not take the place of one that has replaced the dead socket meanwhile.
TEST_F(NodeFolder, OfSeveralThatStartAtOnceOneIsThere) {
  for (int round = 0; round < 20; ++round) {
    {
      const memory::Descriptor dead(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
      const auto address = base::UnixAddress::file(config_.node.socket);
      ASSERT_EQ(::bind(dead.number(), address->get(), address->bytes()), 0);
    }
    constexpr int kNodes = 4;
    std::unique_ptr<Node> nodes[kNodes];
    std::vector<std::thread> starters;
    for (std::unique_ptr<Node>& node : nodes) {
      starters.emplace_back([this, &node] {
        auto started = Node::start(config_);
        if (started) node = std::move(*started);
      });
    }
    for (std::thread& starter : starters) starter.join();
    EXPECT_EQ(std::ranges::count_if(nodes, [](const auto& node) { return node != nullptr; }), 1);
    const memory::Descriptor client(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const auto address = base::UnixAddress::file(config_.node.socket);
    EXPECT_EQ(::connect(client.number(), address->get(), address->bytes()), 0);
  }
}

TEST_F(NodeFolder, ANodeThatStopsLeavesTheSocketOfAnother) {
  auto first = Node::start(config_);
  ASSERT_TRUE(first) << message(first.error());
  ASSERT_TRUE(fs::remove(config_.node.socket));
  auto second = Node::start(config_);
  ASSERT_TRUE(second) << message(second.error());
  first->reset();
  ASSERT_TRUE(fs::is_socket(config_.node.socket));
  const memory::Descriptor client(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto address = base::UnixAddress::file(config_.node.socket);
  EXPECT_EQ(::connect(client.number(), address->get(), address->bytes()), 0);
  second->reset();
  EXPECT_FALSE(fs::exists(config_.node.socket));
}

TEST_F(NodeFolder, SettingsChangeWhileItRuns) {
  const auto node = Node::start(config_);
  ASSERT_TRUE(node) << message(node.error());
  Config wanted = config_;
  wanted.node.socket_mode = 0660;
  wanted.node.spin_us = 7;
  wanted.node.sweep_ms = 8;
  wanted.node.sweep_asleep_ms = 9;
  wanted.clients.stuck_seconds = 10;
  wanted.log.level = LogLevel::debug;
  wanted.node.cores = 4;  // takes a restart
  EXPECT_TRUE((*node)->change(wanted).empty());
  EXPECT_EQ(permissions(), 0660U);
  wanted.node.cores = config_.node.cores;
  EXPECT_EQ((*node)->config(), wanted);
}

TEST_F(NodeFolder, MetricsMoveToAnotherPortOnceThatIsTaken) {
  HttpListener other([] { return std::string(); });
  HttpListener free_soon([] { return std::string(); });
  ASSERT_TRUE(other.start(0));
  ASSERT_TRUE(free_soon.start(0));
  const auto node = Node::start(config_);
  ASSERT_TRUE(node) << message(node.error());
  const std::uint16_t port = free_soon.port();
  free_soon.stop();
  Config wanted = config_;
  wanted.metrics.port = port;
  EXPECT_TRUE((*node)->change(wanted).empty());
  EXPECT_EQ((*node)->metrics_port(), port);
  EXPECT_EQ(body_of(get(port, "/healthz")), "ok");

  wanted.metrics.port = other.port();
  wanted.node.spin_us = 7;
  const auto stayed = (*node)->change(wanted);
  ASSERT_EQ(stayed.size(), 1u);
  EXPECT_EQ(stayed[0].key, "metrics.port");
  EXPECT_EQ(stayed[0].error, (Error{Code::already_exists, 0, other.port()}));
  EXPECT_EQ((*node)->config().node.spin_us, 7u);
  EXPECT_EQ(body_of(get(port, "/healthz")), "ok");

  wanted.metrics.port = 0;
  EXPECT_TRUE((*node)->change(wanted).empty());
  EXPECT_EQ((*node)->metrics_port(), 0);
  EXPECT_FALSE(HttpClient(port).connected());
}

TEST_F(NodeFolder, ASocketThatIsGoneKeepsItsPermissions) {
  const auto node = Node::start(config_);
  ASSERT_TRUE(node) << message(node.error());
  ASSERT_TRUE(fs::remove(config_.node.socket));
  Config wanted = config_;
  wanted.node.socket_mode = 0666;
  const auto stayed = (*node)->change(wanted);
  ASSERT_EQ(stayed.size(), 1u);
  EXPECT_EQ(stayed[0].key, "node.socket_mode");
  EXPECT_EQ(stayed[0].error.code, Code::not_found);
  EXPECT_EQ((*node)->config(), config_);
}

TEST_F(NodeFolder, AFileInTheWayIsKept) {
  std::ofstream(config_.node.socket) << "data";
  const auto node = Node::start(config_);
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error(), (Error{Code::system, 0, EADDRINUSE}));
  std::ifstream in(config_.node.socket);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "data");
}

}  // namespace
}  // namespace espalier::node

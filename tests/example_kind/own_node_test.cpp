// SPDX-License-Identifier: Apache-2.0
// A node that a program starts for itself (include/espalier/node.hpp), configured by text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "base/temporary_folder.hpp"
#include "espalier/node.hpp"
#include "tests/example_kind/tally.hpp"

namespace espalier::example {
namespace {

constexpr std::uint64_t kHangsNs = 120'000'000'000;  // only a machine that hangs takes so long

class OwnNode : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  /// At a socket of this name, small.
  [[nodiscard]] NodeSettings settings(const std::string& name) const {
    return {.toml = "[memory]\nlimit = \"64MiB\"\nhuge_pages = false\n",
            .values = {{"node.socket", path(name)}}};
  }

  const base::TemporaryFolder folder_;
  TallyProgram program_;
};

std::uint64_t sum_of_two(Store& store, const OffloadRow& row) {
  const auto reply =
      store.call(row, BytesWriter().put(std::uint64_t{40}).put(std::uint64_t{2}).bytes());
  EXPECT_TRUE(reply) << message(reply.error());
  return reply ? BytesReader(*reply).take<std::uint64_t>() : 0;
}

TEST_F(OwnNode, ServesWhereItIsToldAndStops) {
  NodeSettings wanted = settings("node");
  wanted.values.emplace_back("node.fabric", "shm:" + path("fabric"));
  wanted.values.emplace_back("map", "prices");
  auto node = Node::start(wanted, program_.offloads());
  ASSERT_TRUE(node) << message(node.error());
  EXPECT_EQ(node->address(), "unix:" + path("node"));
  EXPECT_EQ(node->fabric_addresses(), std::vector<std::string>{"shm:" + path("fabric")});
  for (const std::string& address : {node->address(), node->fabric_addresses().front()}) {
    auto store = Store::connect(address);
    ASSERT_TRUE(store) << address << message(store.error());
    EXPECT_EQ(store->map_names(), std::vector<std::string>{"prices"});
    EXPECT_EQ(sum_of_two(*store, kEchoSum), 42u);
    EXPECT_EQ(sum_of_two(*store, kHelperSum), 42u);
    EXPECT_GE(node->connections(), 1u);
  }
  const auto second = Node::start(settings("node"), program_.offloads());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().error.code, Code::already_exists);
  Node moved = std::move(*node);
  moved.stop();
  moved.stop();
  EXPECT_EQ(moved.connections(), 0u);
  EXPECT_TRUE(moved.fabric_addresses().empty());
  EXPECT_FALSE(Store::connect(moved.address()));
  EXPECT_TRUE(Node::start(wanted));  // with nothing of its own
}

TEST_F(OwnNode, WhyItsDataFolderCannotBeUsedIsTold) {
  NodeSettings wanted = settings("node");
  std::ofstream(path("file")) << "no folder";
  wanted.values.emplace_back("data.dir", path("file"));
  const auto node = Node::start(wanted, program_.offloads());
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error().error.code, Code::corrupt);
  EXPECT_THAT(node.error().words, testing::HasSubstr(path("file")));
}

TEST_F(OwnNode, WhatIsWrongIsToldInWords) {
  const auto words_of = [&](const NodeSettings& wanted, Offloads offloads) {
    const auto node = Node::start(wanted, std::move(offloads));
    EXPECT_FALSE(node);
    if (node) return std::string();
    EXPECT_EQ(node.error().error.code, Code::invalid_argument);
    return node.error().words;
  };
  NodeSettings wanted = settings("node");
  wanted.values.emplace_back("node.cores", "none");
  wanted.values.emplace_back("node.colour", "red");
  const std::string words = words_of(wanted, {});
  EXPECT_THAT(words, testing::HasSubstr("node.cores"));
  EXPECT_THAT(words, testing::HasSubstr("colour"));
  wanted = settings("node");
  wanted.toml = "[node]\ncores = = 2\n";
  EXPECT_THAT(words_of(wanted, {}), testing::HasSubstr("NodeSettings::toml:2"));
  wanted = settings("node");
  wanted.values.emplace_back("config", "/etc/passwd");
  EXPECT_THAT(words_of(wanted, {}), testing::HasSubstr("config"));
  Offloads offloads = program_.offloads();
  offloads.calls[0].row.number = 3;
  EXPECT_THAT(words_of(settings("node"), offloads), testing::HasSubstr("below 128"));
}

TEST_F(OwnNode, ADeviceHandsCallsToItsHost) {
  NodeSettings of_host = settings("host");
  of_host.values.emplace_back("node.fabric", "shm:" + path("fabric"));
  of_host.values.emplace_back("node.one_sided", "true");
  const auto host = Node::start(of_host, program_.offloads());
  ASSERT_TRUE(host) << message(host.error());
  TallyProgram at_device;
  const auto device = Node::start({.values = {{"node.socket", path("device")},
                                              {"node.place", "device"},
                                              {"node.host", host->fabric_addresses().front()}}},
                                  at_device.offloads());
  ASSERT_TRUE(device) << message(device.error());
  auto store = Store::connect(device->address());
  ASSERT_TRUE(store) << message(store.error());
  EXPECT_EQ(sum_of_two(*store, kEchoSum), 42u);
  ASSERT_TRUE(store->call(kSignal));
  EXPECT_TRUE(program_.signalled);
  EXPECT_FALSE(at_device.signalled);
  const auto refused = store->call(kNotAtDevices);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error.code, Code::unsupported);
}

/// The node at the end of a link, which then uses another one.
class OwnNodeLost : public OwnNode {
 protected:
  void SetUp() override {
    for (const auto& [name, node] : {std::pair("a", &a_), std::pair("b", &b_)}) {
      TallyProgram& program = *name == 'a' ? program_ : other_;
      auto started = Node::start(settings(name), program.offloads());
      ASSERT_TRUE(started) << message(started.error());
      node->emplace(std::move(*started));
    }
    point_to("a");
  }
  void point_to(const std::string& name) const {
    std::filesystem::remove(path("now"));
    std::filesystem::create_symlink(path(name), path("now"));
  }
  /// Calls a, which stops before it has answered, when b has already replaced it.
  TableResult<std::string> ask_while_it_stops(const OffloadRow& row) {
    auto store = Store::connect("unix:" + path("now"));
    EXPECT_TRUE(store) << message(store.error());
    TableResult<std::string> reply;
    std::jthread asks([&] { reply = store->call(row); });
    const base::Stopwatch watch;
    while (program_.waiting == 0 && watch.elapsed_ns() < kHangsNs) std::this_thread::yield();
    point_to("b");
    other_.signalled = true;
    a_->stop();
    asks.join();
    return reply;
  }

  TallyProgram other_;
  std::optional<Node> a_;
  std::optional<Node> b_;
};

TEST_F(OwnNodeLost, WhatMayBeDoneTwiceIsAskedForOnceMore) {
  OffloadRow row = kWorkerAwaitSignal;
  row.idempotent = true;
  const auto reply = ask_while_it_stops(row);
  EXPECT_TRUE(reply) << message(reply.error());
  EXPECT_EQ(program_.waiting, 1);
  EXPECT_EQ(other_.waiting, 1);
}

// Nor does a helper continue for a client that is gone.
TEST_F(OwnNodeLost, WhatMayNotIsLost) {
  const auto reply = ask_while_it_stops(kAwaitSignal);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().error.code, Code::connection_lost);
  EXPECT_EQ(other_.waiting, 0);
}

}  // namespace
}  // namespace espalier::example

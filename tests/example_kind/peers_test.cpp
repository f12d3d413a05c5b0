// SPDX-License-Identifier: Apache-2.0
// Three nodes: an offload of one reads a word at the second, writes it to the third, and answers
// its client, over links that reconnect by themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/temporary_folder.hpp"
#include "channel/objects.hpp"
#include "client/store_impl.hpp"
#include "engine/peer_posts.hpp"
#include "node/node.hpp"
#include "tests/example_kind/cells.hpp"
#include "tests/support/node_config.hpp"
#include "wire/testing/call_checks.hpp"

namespace espalier::example {
namespace {

using cell_calls::Copy;

constexpr std::uint64_t kTimeoutNs = 120'000'000'000;  // only a machine that hangs takes so long

/// Nodes a, b and c; a has the others for peers.
class ThreeNodes : public ::testing::Test {
 protected:
  explicit ThreeNodes(std::string way = "shm") : way_(std::move(way)) {}

  void start_peers() {
    start("b", b_, b_config_);
    start("c", c_, c_config_);
  }
  void start_a() {
    node::Config config = config_of("a");
    config.node.fabric.clear();
    config.peers = {{"b", b_config_.node.fabric, secret_file_},
                    {"c", c_config_.node.fabric, secret_file_}};
    node::NodeOptions options;
    options.own_kinds = {&cells_kind(), 1};
    options.peer_silence_ns = kTimeoutNs;
    auto node = node::Node::start(config, options);
    ASSERT_TRUE(node) << message(node.error());
    a_ = std::move(*node);
    auto store = Store::connect("unix:" + config.node.socket);
    ASSERT_TRUE(store) << message(store.error());
    store_.emplace(std::move(*store));
  }
  void start_all() {
    start_peers();
    ASSERT_FALSE(HasFatalFailure());
    start_a();
  }
  /// At the address that it had before, if it had one.
  void start(const std::string& name, std::unique_ptr<node::Node>& into, node::Config& config) {
    if (config.node.fabric.empty()) config = config_of(name);
    node::NodeOptions options;
    options.own_kinds = {&cells_kind(), 1};
    options.peer_silence_ns = kTimeoutNs;
    auto node = node::Node::start(config, options);
    ASSERT_TRUE(node) << message(node.error());
    into = std::move(*node);
    config.node.fabric = into->fabric_addresses().front();
  }
  [[nodiscard]] node::Config config_of(const std::string& name) {
    node::Config config = test::node_config(folder_);
    config.node.socket = (folder_ / (name + ".socket")).string();
    config.node.fabric =
        way_ == "roce" || way_ == "secret"
            ? "roce://127.0.0.1:0/1"
            : (way_ == "memif" ? "roce+memif:" : "shm:") + (folder_ / name).string();
    config.clients.secrets = secret_file_;
    return config;
  }
  void ask_for_secrets() {
    secret_file_ = (folder_ / "peers.secret").string();
    std::ofstream(secret_file_) << "a admin 0" << std::string(62, 'a') << "0\n";
    ASSERT_EQ(::chmod(secret_file_.c_str(), 0600), 0);
  }
  [[nodiscard]] static const Cells& cells(const node::Node& node) {
    return *node.services().part<NodeCells>().cells;
  }
  [[nodiscard]] Result<cell_calls::Copied> copy(std::uint32_t from, std::uint32_t to) const {
    return channel::ask(*client::StoreImpl::of(*store_).channel(), Copy{from, to});
  }
  /// Until the links are there. `tries`: of those but the last, whose ends are unknown, each may
  /// have copied.
  [[nodiscard]] Result<cell_calls::Copied> copy_at_last(std::uint32_t from, std::uint32_t to,
                                                        std::uint64_t* tries = nullptr) const {
    const base::Stopwatch watch;
    for (;;) {
      if (tries != nullptr) ++*tries;
      const auto copied = copy(from, to);
      const bool gone = !copied && copied.error().code == Code::connection_lost;
      if (!gone || watch.elapsed_ns() > kTimeoutNs) return copied;
      std::this_thread::yield();
    }
  }

  const base::TemporaryFolder folder_;
  const std::string way_;
  std::string secret_file_;
  node::Config b_config_;
  node::Config c_config_;
  std::unique_ptr<node::Node> b_;
  std::unique_ptr<node::Node> c_;
  std::unique_ptr<node::Node> a_;  // ends first
  std::optional<Store> store_;
};

class PeersOverEachWay : public ThreeNodes, public ::testing::WithParamInterface<const char*> {
 protected:
  PeersOverEachWay() : ThreeNodes(GetParam()) {}
  void SetUp() override {
    if (way_ == "secret") ask_for_secrets();
    start_all();
  }
};

TEST_P(PeersOverEachWay, AWordIsReadAtOneAndWrittenToTheOther) {
  base::Random random(base::seed_from_environment(39));
  std::uint64_t copies = 0;
  for (int round = 0; round < 50; ++round) {
    const auto from = static_cast<std::uint32_t>(random.below(kCopiesCounted));
    const auto to = static_cast<std::uint32_t>(random.below(kCopiesCounted));
    const std::uint64_t word = random();
    cells(*b_).word(from) = word;
    std::uint64_t tries = 0;
    const auto copied = copy_at_last(from, to, &tries);
    ASSERT_TRUE(copied) << message(copied.error());
    EXPECT_EQ(copied->word, word);
    EXPECT_EQ(cells(*c_).word(to), word);
    const std::uint64_t counted = cells(*c_).word(kCopiesCounted);
    EXPECT_GE(counted, copies + 1);
    EXPECT_LE(counted, copies + tries);  // exactly one more where none had to be repeated
    copies = counted;
  }
}

// It is refused here, for what the peer refuses would end the link.
TEST_P(PeersOverEachWay, WhatIsOutOfBoundsNeverLeaves) {
  ASSERT_TRUE(copy_at_last(0, 0));
  for (const std::uint32_t far : {Cells::kWords, ~std::uint32_t{0}}) {
    const auto from = copy(far, 0);
    ASSERT_FALSE(from);
    EXPECT_EQ(from.error().code, Code::invalid_argument);
    const auto to = copy(0, far);
    ASSERT_FALSE(to);
    EXPECT_EQ(to.error().code, Code::invalid_argument);
  }
  EXPECT_TRUE(copy(1, 1)) << "the link has ended";
}

TEST_P(PeersOverEachWay, ALinkIsMadeAgainWhenItsPeerIs) {
  cells(*b_).word(3) = 1;
  ASSERT_TRUE(copy_at_last(3, 4));
  for (std::uint64_t round = 2; round < 5; ++round) {
    c_.reset();
    const auto gone = copy(3, 4);
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().code, Code::connection_lost);
    start("c", c_, c_config_);
    EXPECT_EQ(cells(*c_).word(4), 0u);  // another one, with words of its own
    cells(*b_).word(3) = round;
    const auto copied = copy_at_last(3, 4);
    ASSERT_TRUE(copied) << message(copied.error());
    EXPECT_EQ(cells(*c_).word(4), round);
  }
}

TEST_P(PeersOverEachWay, APeerThatIsGoneHoldsUpNobody) {
  ASSERT_TRUE(copy_at_last(0, 0));
  b_.reset();
  auto map = store_->open_map("default");
  ASSERT_TRUE(map);
  for (int round = 0; round < 20; ++round) {
    const auto gone = copy(0, 0);
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().code, Code::connection_lost);
    ASSERT_TRUE(map->put("key", std::to_string(round)));
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, PeersOverEachWay,
                         ::testing::Values("shm", "roce", "memif", "secret"),
                         [](const auto& each) { return std::string(each.param); });

TEST_F(ThreeNodes, ANodeStartsBeforeItsPeers) {
  b_config_ = config_of("b");
  c_config_ = config_of("c");
  start_a();
  ASSERT_FALSE(HasFatalFailure());
  const auto gone = copy(0, 0);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::connection_lost);
  start_peers();
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(copy_at_last(0, 0));
}

TEST_F(ThreeNodes, WithoutPeersTheCallSaysSo) {
  start("b", b_, b_config_);
  store_.emplace(*Store::connect("unix:" + b_config_.node.socket));
  const auto copied = copy(0, 0);
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().code, Code::unsupported);
}

TEST_F(ThreeNodes, AFileOfASecretThatCannotBeReadIsAMistake) {
  node::Config config = config_of("a");
  config.peers = {{"b", "shm:/nowhere", (folder_ / "none").string()}};
  std::string mistake;
  node::NodeOptions options;
  options.peer_mistake = &mistake;
  EXPECT_FALSE(node::Node::start(config, options));
  EXPECT_THAT(mistake, testing::StartsWith("peer b: "));
  EXPECT_THAT(mistake, testing::HasSubstr((folder_ / "none").string()));
}

class PeersConcurrency : public ThreeNodes {};

// Each copy that is answered was counted once at the peer.
TEST_F(PeersConcurrency, ManyClientsShareTheLinks) {
  constexpr int kThreads = 3;
  constexpr int kEach = 60;
  start_all();
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(copy_at_last(0, 0));
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        for (std::uint32_t round = 0; round < kEach; ++round) {
          cells(*b_).word(i) = round;
          const auto copied = copy(i, 10 + i);
          ASSERT_TRUE(copied) << message(copied.error());
          EXPECT_EQ(copied->word, round);
          EXPECT_EQ(cells(*c_).word(10 + i), round);
        }
      });
    }
  }
  EXPECT_EQ(cells(*c_).word(kCopiesCounted), 1u + kThreads * kEach);
}

TEST(CellCalls, AnyBytesAreReadOrRefused) {
  base::Random random(base::seed_from_environment(20261129));
  for (int i = 0; i < 5'000; ++i) {
    std::string payload(random.below(40), '\0');
    for (char& byte : payload) byte = static_cast<char>(random.below(256));
    wire::CallBytes bytes;
    bytes.object = static_cast<std::uint32_t>(random());
    bytes.header.version = random() >> random.below(64);
    bytes.payload = payload;
    wire::check_calls(cell_calls::All(), bytes);
  }
}

}  // namespace
}  // namespace espalier::example

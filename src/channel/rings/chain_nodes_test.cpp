// SPDX-License-Identifier: Apache-2.0
// The nodes of a chain as a server in the place of etcd names them; tests/chains has a real one.
#include "channel/rings/chain_nodes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/temporary_folder.hpp"
#include "chain/membership/testing/fake_etcd.hpp"
#include "channel/rings/testing/fake_node.hpp"
#include "espalier/map.hpp"

namespace espalier::client {
namespace {

using chain::FakeEtcd;
using chain::http_answer;
using chain::range_body;

constexpr std::uint64_t kFarNs = 60'000'000'000;  // only a machine that hangs takes so long

std::uint64_t far() { return base::monotonic_ns() + kFarNs; }

/// A view whose members have these addresses for clients.
std::string view_text(const std::vector<std::string>& clients) {
  chain::View view{.chain = 5, .epoch = 1, .fence_ms = 400, .members = {}};
  for (const std::string& each : clients) {
    const auto number = static_cast<std::uint32_t>(view.members.size() + 1);
    view.members.push_back({number, "m" + std::to_string(number), "shm:/members", each});
  }
  return print(view);
}

FakeEtcd::Answer names(const std::vector<std::string>& clients) {
  return {http_answer(200, range_body(view_text(clients)))};
}

std::vector<std::string> paths_of(const ChainNodes& nodes) {
  std::vector<std::string> paths;
  for (const OneAddress& node : *nodes.turn(false).nodes) {
    const auto* const path = std::get_if<UnixPath>(&node);
    paths.push_back(path != nullptr ? path->path : "another");
  }
  return paths;
}

/// The fault of a chain whose etcd answers so.
ChainFault fault_with(const FakeEtcd::Answer& answer) {
  const FakeEtcd etcd([&](const FakeEtcd::Request&) { return answer; });
  ChainNodes nodes(chain::EtcdPlace{{etcd.endpoint()}, "key"});
  const auto asked = nodes.ask(far());
  EXPECT_FALSE(asked);
  EXPECT_TRUE(nodes.turn(true).nodes->empty());
  if (asked || asked.error().code != Code::no_chain) return ChainFault{};
  return static_cast<ChainFault>(asked.error().detail);
}

TEST(ChainNodes, AddressesOfChainsAreReadOrRefused) {
  for (const char* const good :
       {"chain://unix:/a", "chain://unix:/a,shm:/b?rings=send,roce://192.0.2.1/1",
        "chain://etcd://127.0.0.1:2379/key", "chain://etcd://one:1,[::1]:2/espalier/kv"}) {
    EXPECT_EQ(Store::explain_address(good), "") << good;
  }
  for (const char* const bad :
       {"chain://", "chain://etcd://", "chain://etcd://one:1", "chain://etcd://one:1/",
        "chain://etcd://one/key", "chain://etcd://one:1/key,unix:/a", "chain://unix:/a,",
        "chain://unix:/a,etcd://one:1/key", "chain://chain://unix:/a", "etcd://one:1/key",
        "chain://http://one:1/key"}) {
    EXPECT_EQ(Store::connect(bad).error().code, Code::invalid_argument) << bad;
    EXPECT_THAT(Store::explain_address(bad), ::testing::HasSubstr("chain://etcd://HOST:PORT"));
  }
}

TEST(ChainNodes, TravelFarWhereAnyOfThemIsFarOrMayBe) {
  EXPECT_FALSE(is_far(*parse_node_address("chain://unix:/a,shm:/b")));
  EXPECT_TRUE(is_far(*parse_node_address("chain://unix:/a,roce://192.0.2.1/1")));
  EXPECT_TRUE(is_far(*parse_node_address("chain://etcd://127.0.0.1:2379/key")));
}

TEST(ChainNodes, EtcdNamesThemTheHeadFirst) {
  const FakeEtcd etcd([](const FakeEtcd::Request&) {
    return names({"unix:/head", "", "bogus:x", "chain://unix:/x", "unix:/tail"});
  });
  ChainNodes nodes(chain::EtcdPlace{{etcd.endpoint()}, "key"});
  EXPECT_TRUE(paths_of(nodes).empty()) << "it was not asked yet";
  ASSERT_TRUE(nodes.ask(far()));
  EXPECT_EQ(paths_of(nodes), (std::vector<std::string>{"/head", "/tail"}));
  EXPECT_EQ(nodes.turn(true).first, 0u);
  EXPECT_EQ(nodes.turn(true).count, 2u);
}

TEST(ChainNodes, EachFaultHasItsReason) {
  EXPECT_EQ(fault_with({http_answer(503, "{}")}), ChainFault::unavailable);
  EXPECT_EQ(fault_with({http_answer(401, "{}")}), ChainFault::refused);
  EXPECT_EQ(fault_with({http_answer(200, "hello")}), ChainFault::strange);
  EXPECT_EQ(fault_with({http_answer(200, range_body("hello"))}), ChainFault::strange);
  EXPECT_EQ(fault_with({http_answer(200, range_body(std::nullopt))}), ChainFault::no_chain);
  EXPECT_EQ(fault_with(names({""})), ChainFault::no_addresses);
  EXPECT_EQ(fault_with(names({"", "bogus:x"})), ChainFault::no_addresses);
}

TEST(ChainNodes, WhatIsKnownStaysWhileEtcdFails) {
  std::atomic<bool> fails{false};
  const FakeEtcd etcd([&](const FakeEtcd::Request&) {
    return fails ? FakeEtcd::Answer{http_answer(503, "{}")} : names({"unix:/one"});
  });
  ChainNodes nodes(chain::EtcdPlace{{etcd.endpoint()}, "key"});
  ASSERT_TRUE(nodes.ask(far()));
  fails = true;
  const auto asked = nodes.ask(far());
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error(), (Error{Code::no_chain, 0, 1}));
  EXPECT_EQ(paths_of(nodes), std::vector<std::string>{"/one"});
}

/// Has no memory of rings, and is lost when the test says so.
class FakeConnection final : public NodeConnection {
 public:
  FakeConnection() : NodeConnection(false) {}
  [[nodiscard]] rings::SlotReader responses(std::uint32_t) const override { std::abort(); }
  void ring(std::uint64_t) override {}
  void fall_asleep(std::uint32_t, const rings::SlotReader&, std::uint64_t) override {}
  bool ask_lost() override { return lost(); }
  void hang_up() override { lose(); }
};

/// A turn in one word: where it begins, and how many.
std::string words_of(const ChainNodes::Turn& turn) {
  return std::to_string(turn.first) + "+" + std::to_string(turn.count);
}

TEST(ChainNodes, TheOneThatAcceptedComesFirstUntilItIsLostAndThenLast) {
  ChainNodes named(std::vector<OneAddress>{UnixPath{"/a"}, UnixPath{"/b"}, UnixPath{"/c"}});
  EXPECT_EQ(words_of(named.turn(true)), "0+3");
  const auto connection = std::make_shared<FakeConnection>();
  named.accepted(named.turn(true), 1, connection);
  EXPECT_EQ(words_of(named.turn(true)), "1+3");
  connection->hang_up();
  EXPECT_EQ(words_of(named.turn(true)), "2+3");
  EXPECT_EQ(words_of(named.turn(false)), "2+3");
  EXPECT_FALSE(named.may_ask());
}

// A former head may accept clients, and answer none of them: then etcd knows the present one.
TEST(ChainNodes, TheOneThatWasLostIsTriedOnceEtcdWasAsked) {
  const FakeEtcd etcd([](const FakeEtcd::Request&) { return names({"unix:/a", "unix:/b"}); });
  ChainNodes nodes(chain::EtcdPlace{{etcd.endpoint()}, "key"});
  EXPECT_EQ(words_of(nodes.turn(true)), "0+0");
  EXPECT_TRUE(nodes.may_ask());
  ASSERT_TRUE(nodes.ask(far()));
  const auto old = nodes.turn(true);
  auto connection = std::make_shared<FakeConnection>();
  nodes.accepted(old, 0, connection);
  EXPECT_EQ(words_of(nodes.turn(true)), "0+2");
  connection.reset();
  EXPECT_EQ(words_of(nodes.turn(true)), "1+1");
  EXPECT_EQ(words_of(nodes.turn(false)), "1+2");
  ASSERT_TRUE(nodes.ask(far()));
  EXPECT_EQ(words_of(nodes.turn(true)), "0+2") << "the head as etcd has it";
  nodes.accepted(old, 1, nullptr);
  EXPECT_EQ(words_of(nodes.turn(true)), "0+2") << "of nodes that are known no more";
}

class ChainNodesAccess : public ::testing::Test {
 protected:
  void TearDown() override { ::unsetenv(chain::kEtcdFileVariable); }
  base::TemporaryFolder folder_;
};

TEST_F(ChainNodesAccess, AFileWithoutUseIsAFaultBeforeAnythingIsSent) {
  const FakeEtcd etcd([](const FakeEtcd::Request&) { return names({"unix:/one"}); });
  const std::string path = (folder_ / "access").string();
  ::setenv(chain::kEtcdFileVariable, path.c_str(), 1);
  ChainNodes nodes(chain::EtcdPlace{{etcd.endpoint()}, "key"});
  EXPECT_EQ(nodes.ask(far()).error(), (Error{Code::no_chain, 0, 7})) << "it is not there";
  // It has a password, which would go to another machine in the clear.
  std::ofstream(path) << "user ann\npassword word\n";
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  ChainNodes others(chain::EtcdPlace{{etcd.endpoint(), "192.0.2.1:2379"}, "key"});
  EXPECT_EQ(others.ask(far()).error(), (Error{Code::no_chain, 0, 7}));
  EXPECT_EQ(etcd.requests(), 0u);
  std::ofstream(path) << "nonsense\n";
  EXPECT_EQ(Store::connect("chain://etcd://" + etcd.endpoint() + "/key").error(),
            (Error{Code::no_chain, 0, 7}));
}

/// Nodes at two addresses; `refusing_` accepts no client, and says why.
class ChainNodesRefusal : public ::testing::Test {
 protected:
  static constexpr wire::ConnectionLayout kRings{64, 64, 1};
  static constexpr Error kWhy{Code::not_permitted, 0, 4};
  static void refuse(wire::Welcome& welcome) {
    welcome.code = static_cast<std::uint32_t>(kWhy.code);
    welcome.detail = kWhy.detail;
  }
  void SetUp() override { refusing_.change = refuse; }
  /// Connects while each of the two accepts one client.
  [[nodiscard]] Result<std::shared_ptr<NodeConnection>> connect(const NodeAddress& address) {
    return refusing_.accepting(
        kRings, [&] { return other_.accepting(kRings, [&] { return connect_to(address, {}); }); });
  }
  [[nodiscard]] NodeAddress both() const {
    return *parse_node_address("chain://unix:" + refusing_path_ + ",unix:" + other_path_);
  }

  base::TemporaryFolder folder_;
  const std::string refusing_path_ = folder_ / "refusing";
  const std::string other_path_ = folder_ / "other";
  FakeNode refusing_{refusing_path_};
  FakeNode other_{other_path_};
};

// What is at an old address may be another node than a member, with other secrets.
TEST_F(ChainNodesRefusal, ANodeBehindOneThatRefusesIsTried) {
  const auto connected = connect(both());
  ASSERT_TRUE(connected) << message(connected.error());
}

TEST_F(ChainNodesRefusal, IsTheAnswerOnceAllWereTried) {
  other_.change = refuse;
  const base::Stopwatch watch;
  const auto connected = connect(both());
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error(), kWhy);
  EXPECT_LT(watch.elapsed_ns(), kFarNs);
}

TEST_F(ChainNodesRefusal, IsTheAnswerThoughTheLastNodeIsNotThere) {
  const NodeAddress address = *parse_node_address("chain://unix:" + refusing_path_ +
                                                  ",unix:" + (folder_ / "none").string());
  const auto connected = connect(address);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error(), kWhy);
}

TEST_F(ChainNodesRefusal, EtcdIsAskedOnceForOtherNodes) {
  std::atomic<bool> has_moved{false};
  const FakeEtcd etcd([&](const FakeEtcd::Request&) {
    return names({"unix:" + (has_moved ? other_path_ : refusing_path_)});
  });
  const NodeAddress address = *parse_node_address("chain://etcd://" + etcd.endpoint() + "/key");
  ChainNodes& nodes = *std::get<ChainAddress>(address).nodes;
  ASSERT_TRUE(nodes.ask(far()));
  while (!nodes.may_ask()) ::poll(nullptr, 0, 1);
  has_moved = true;
  const auto connected = connect(address);
  ASSERT_TRUE(connected) << message(connected.error());
  EXPECT_EQ(etcd.requests(), 2u);
}

TEST_F(ChainNodesRefusal, IsTheAnswerWhereEtcdNamesNoOtherNode) {
  const FakeEtcd etcd([&](const FakeEtcd::Request&) { return names({"unix:" + refusing_path_}); });
  const NodeAddress address = *parse_node_address("chain://etcd://" + etcd.endpoint() + "/key");
  const auto connected = connect(address);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error(), kWhy);
  EXPECT_EQ(etcd.requests(), 1u);
}

// What does not change by waiting is not waited for.
TEST(ChainNodes, ConnectingEndsWhereEtcdSaysThatThereIsNoChain) {
  const FakeEtcd etcd(
      [](const FakeEtcd::Request&) { return FakeEtcd::Answer{http_answer(200, range_body({}))}; });
  const auto store = Store::connect("chain://etcd://" + etcd.endpoint() + "/key");
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error(), (Error{Code::no_chain, 0, 5}));
  EXPECT_EQ(etcd.requests(), 1u);
}

// Ten seconds: etcd may have a leader by then.
TEST(ChainNodesSlow, ConnectingEndsThoughEtcdIsSilent) {
  const FakeEtcd etcd([](const FakeEtcd::Request&) {
    return FakeEtcd::Answer{"", FakeEtcd::Then::hold};
  });
  const base::Stopwatch watch;
  const auto store = Store::connect("chain://etcd://" + etcd.endpoint() + "/key");
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error(), (Error{Code::no_chain, 0, 1}));
  EXPECT_GE(watch.elapsed_ns(), 9'000'000'000u);
  EXPECT_LT(watch.elapsed_ns(), kFarNs);
  EXPECT_LE(etcd.requests(), 20u) << "it is asked with pauses";
}

// None of the nodes that it names is there: it is asked again, with pauses, and then the last
// node's error is the answer.
TEST(ChainNodesSlow, ConnectingEndsThoughNoNodeServes) {
  const base::TemporaryFolder folder;
  const FakeEtcd etcd(
      [&](const FakeEtcd::Request&) { return names({"unix:" + (folder / "none").string()}); });
  const auto store = Store::connect("chain://etcd://" + etcd.endpoint() + "/key");
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error(), (Error{Code::system, 0, ENOENT}));
  EXPECT_GE(etcd.requests(), 2u);
  EXPECT_LE(etcd.requests(), 42u);
}

// The others waited for the one that asked: its error is theirs, and the pause is kept.
TEST(ChainNodesConcurrency, ThreadsThatWaitedDoNotAskAgainWhatFailed) {
  const FakeEtcd etcd(
      [](const FakeEtcd::Request&) { return FakeEtcd::Answer{http_answer(503, "{}")}; });
  ChainNodes nodes(chain::EtcdPlace{{etcd.endpoint()}, "key"});
  const base::Stopwatch watch;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int again = 0; again < 5; ++again) {
        const auto asked = nodes.ask(far());
        ASSERT_FALSE(asked);
        EXPECT_EQ(asked.error(), (Error{Code::no_chain, 0, 1}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(etcd.requests(), 1u);
  EXPECT_LE(etcd.requests(), 1 + watch.elapsed_ns() / ChainNodes::kAskPauseNs);
}

TEST(ChainNodesConcurrency, ThreadsAskAndReadAtTheSameTime) {
  const FakeEtcd etcd([](const FakeEtcd::Request&) { return names({"unix:/one", "unix:/two"}); });
  ChainNodes nodes(chain::EtcdPlace{{etcd.endpoint()}, "key"});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int again = 0; again < 5; ++again) {
        EXPECT_TRUE(nodes.ask(far()));
        const auto turn = nodes.turn(true);
        EXPECT_EQ(turn.nodes->size(), 2u);
        nodes.accepted(turn, 1, nullptr);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(etcd.requests(), 5u);
  EXPECT_LE(etcd.requests(), 20u);
}

}  // namespace
}  // namespace espalier::client

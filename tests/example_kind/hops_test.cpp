// SPDX-License-Identifier: Apache-2.0
// Two nodes that call each other while clients' requests take all their places: each call is
// answered, since requests from nodes have places of their own.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/temporary_folder.hpp"
#include "channel/rings/fabric_connection.hpp"
#include "channel/rings/thread_rings.hpp"
#include "engine/scheduler.hpp"
#include "node/node.hpp"
#include "tests/example_kind/waits.hpp"
#include "tests/support/node_config.hpp"
#include "wire/testing/call_checks.hpp"

namespace espalier::example {
namespace {

using wait_calls::Chain;
using wait_calls::Chained;

constexpr std::uint64_t kHopsTimeoutNs =
    120'000'000'000;  // only a machine that hangs takes so long
// More connections than have a share of more than a few places, so that they take all together.
constexpr std::uint32_t kFillers = 36;
constexpr std::uint32_t kOfEach = 10;

/// Of one thread, by rings of its own.
struct Filler {
  std::unique_ptr<client::ThreadRings> rings;
  std::uint32_t sent = 0;
  std::uint32_t answered = 0;
};

class TwoNodes : public ::testing::Test {
 protected:
  struct Side {
    node::Config config;
    std::unique_ptr<node::Node> node;
    std::vector<Filler> fillers;
    std::vector<Result<Chained>> answers;
  };

  void SetUp() override {
    for (const char* const name : {"a", "b"}) {
      Side& side = sides_.emplace_back();
      side.config = test::node_config(folder_);
      side.config.node.socket = (folder_ / (std::string(name) + ".socket")).string();
      side.config.node.fabric = "shm:" + (folder_ / name).string();
    }
    for (std::size_t i = 0; i < 2; ++i) {
      sides_[i].config.peers = {{"other", sides_[1 - i].config.node.fabric, ""}};
      node::NodeOptions options;
      options.own_kinds = {&waits_kind(), 1};
      options.peer_silence_ns = kHopsTimeoutNs;
      auto node = node::Node::start(sides_[i].config, options);
      ASSERT_TRUE(node) << message(node.error());
      sides_[i].node = std::move(*node);
    }
  }
  void TearDown() override {
    for (Side& side : sides_) {
      if (side.node) waits(side).may_go = 1'000'000;
    }
  }
  [[nodiscard]] static NodeWaits& waits(const Side& side) {
    return side.node->services().part<NodeWaits>();
  }
  static void send(Filler& filler, const Chain& asked) {
    const std::uint32_t fields[] = {asked.held, asked.more};
    const std::string_view payload(reinterpret_cast<const char*>(fields), sizeof fields);
    ASSERT_TRUE(filler.rings->begin_send({.offload = Chain::kCall.id, .payload = payload}, 0));
    ++filler.sent;
    filler.rings->ring();
  }
  /// Takes each place that clients can have, with requests that call the other node `more` times.
  void fill(Side& side, std::uint32_t more) {
    const auto address = fabric::parse(side.config.node.fabric);
    ASSERT_TRUE(address);
    for (std::uint32_t i = 0; i < kFillers; ++i) {
      client::FabricConnectionOptions options;
      options.response_rings = 1;
      options.timeout_ns = kHopsTimeoutNs;
      auto connection = client::FabricConnection::open(*address, options);
      ASSERT_TRUE(connection) << message(connection.error());
      auto rings = client::ThreadRings::open(*connection);
      ASSERT_TRUE(rings);
      Filler& filler = side.fillers.emplace_back();
      filler.rings = std::move(*rings);
      for (std::uint32_t k = 0; k < kOfEach; ++k) send(filler, {.held = 1, .more = more});
    }
    ASSERT_TRUE(
        take_until([&] { return waits(side).held.load() >= offload::Scheduler::kInFlight; }));
  }
  /// Takes answers until this holds.
  template <class Condition>
  bool take_until(const Condition& condition) {
    for (const base::Stopwatch watch; !condition();) {
      if (watch.elapsed_ns() > kHopsTimeoutNs) return false;
      for (Side& side : sides_) {
        for (Filler& filler : side.fillers) take(side, filler);
      }
      std::this_thread::yield();
    }
    return true;
  }
  static void take(Side& side, Filler& filler) {
    client::Incoming response;
    while (filler.rings->receive(response)) {
      ++filler.answered;
      const auto chained = wire::read_reply<Chained>(response.header, response.payload);
      if (response.header.code != 0) {
        side.answers.emplace_back(fail(static_cast<Code>(response.header.code)));
      } else if (chained) {
        side.answers.emplace_back(*chained);
      } else {
        side.answers.emplace_back(fail(Code::corrupt));
      }
    }
  }

  const base::TemporaryFolder folder_;
  std::vector<Side> sides_;
};

// There, and back: over two nodes at most.
TEST_F(TwoNodes, WhosePlacesAreAllTakenCallEachOther) {
  for (Side& side : sides_) {
    fill(side, wire::kHopsMax);
    ASSERT_FALSE(HasFatalFailure());
  }
  for (std::size_t round = 1; round <= 5; ++round) {
    for (const Side& side : sides_) ++waits(side).may_go;
    ASSERT_TRUE(take_until([&] {
      return sides_[0].answers.size() == round && sides_[1].answers.size() == round;
    })) << "they wait for each other";
    for (const Side& side : sides_) {
      ASSERT_TRUE(side.answers.back());
      EXPECT_EQ(side.answers.back()->hops, wire::kHopsMax);
      EXPECT_GE(waits(side).chained.load(), 2 * round);  // of each node's requests one
    }
    // All of them were there, and others come for the place of the one that has gone.
    for (const Side& side : sides_) {
      ASSERT_TRUE(
          take_until([&] { return waits(side).held.load() >= offload::Scheduler::kInFlight; }));
    }
  }
  for (const Side& side : sides_) waits(side).may_go = kFillers * kOfEach;
  EXPECT_TRUE(take_until([&] {
    return sides_[0].answers.size() == kFillers * kOfEach &&
           sides_[1].answers.size() == kFillers * kOfEach;
  }));
}

TEST_F(TwoNodes, WhatWouldGoFurtherEndsWithoutACall) {
  const auto address = fabric::parse(sides_[0].config.node.fabric);
  ASSERT_TRUE(address);
  client::FabricConnectionOptions options;
  options.response_rings = 1;
  auto connection = client::FabricConnection::open(*address, options);
  ASSERT_TRUE(connection) << message(connection.error());
  auto rings = client::ThreadRings::open(*connection);
  ASSERT_TRUE(rings);
  sides_[0].fillers.emplace_back().rings = std::move(*rings);
  send(sides_[0].fillers[0], {.held = 0, .more = wire::kHopsMax + 1});
  ASSERT_TRUE(take_until([&] { return !sides_[0].answers.empty(); }));
  ASSERT_FALSE(sides_[0].answers[0]);
  EXPECT_EQ(sides_[0].answers[0].error().code, Code::unsupported);
}

TEST(WaitCalls, AnyBytesAreReadOrRefused) {
  base::Random random(base::seed_from_environment(20261130));
  for (int i = 0; i < 5'000; ++i) {
    std::string payload(random.below(40), '\0');
    for (char& byte : payload) byte = static_cast<char>(random.below(256));
    wire::CallBytes bytes;
    bytes.object = static_cast<std::uint32_t>(random());
    bytes.header.version = random() >> random.below(64);
    bytes.payload = payload;
    wire::check_calls(wait_calls::All(), bytes);
  }
}

}  // namespace
}  // namespace espalier::example

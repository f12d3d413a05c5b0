// SPDX-License-Identifier: Apache-2.0
// A peer without room for the pair that writes its memory still serves calls, and is asked again.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>

#include "base/random.hpp"
#include "fabric/sim/world.hpp"
#include "tests/support/peer_world_node.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kMemoryMs = 1'000'000;

/// Two nodes, in a fabric that loses nothing.
class TwoPeers : public ::testing::Test {
 protected:
  TwoPeers() {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i] = std::make_unique<PeerWorldNode>(parts_, i, i, world_.add_node(peer_node_name(i)));
    }
    turn();
  }
  ~TwoPeers() override {
    ended_ = true;
    for (auto& node : nodes_) {
      node->set_crashed();
      while (!node->may_end()) world_.step();
      node.reset();
    }
  }
  void turn() {
    if (ended_) return;
    for (const auto& node : nodes_) node->turn();
    world_.after(5'000, [this] { turn(); });
  }
  /// For 200 ms of the world at most.
  template <class Condition>
  bool run_until(const Condition& condition) {
    const std::uint64_t until = world_.now_ns() + 200 * kMemoryMs;
    while (!condition() && world_.now_ns() < until) world_.step_until(until);
    return condition();
  }
  bool answer_all(std::uint32_t requests) {
    nodes_[0]->ask(requests);
    return run_until([this] { return nodes_[0]->is_answered(); });
  }

  fabric::sim::World world_{base::seed_from_environment(39)};
  base::Random random_{40};
  PeerReached reached_;
  PeerHistory history_{reached_};
  PeerWorldParts parts_{.world = world_,
                        .random = random_,
                        .history = history_,
                        .reached = reached_,
                        .nodes = 2,
                        .way = wire::LinkWay::write,
                        .answer_ns = 60 * kMemoryMs,
                        .window = 8,
                        .posts = 4,
                        .calls = 0.3,
                        .other_keys = false};
  std::array<std::unique_ptr<PeerWorldNode>, 2> nodes_;
  bool ended_ = false;
};

TEST_F(TwoPeers, WithoutRoomForAPairThereAreCallsAndLaterMemory) {
  nodes_[1]->refuse_memory(true);
  ASSERT_TRUE(run_until([this] { return nodes_[0]->links_are_up(); }));
  ASSERT_TRUE(answer_all(20));
  EXPECT_GT(reached_.calls, 0u);
  EXPECT_GT(reached_.not_sent, 0u);
  EXPECT_EQ(reached_.unknown + reached_.calls_unknown + reached_.refused, 0u);
  EXPECT_EQ(history_.done_write(1, 0), nullptr);
  nodes_[1]->refuse_memory(false);
  const std::uint64_t later = world_.now_ns() + 20 * kMemoryMs;  // several pauses of the link
  ASSERT_TRUE(run_until([&] { return world_.now_ns() >= later; }));
  ASSERT_TRUE(answer_all(20));
  EXPECT_NE(history_.done_write(1, 0), nullptr);
  EXPECT_EQ(reached_.sessions, 0u);  // it is the session that was there
  EXPECT_TRUE(nodes_[0]->links_are_up());
  history_.check_all();
  EXPECT_EQ(history_.wrong(), "");
}

}  // namespace
}  // namespace espalier::test

// SPDX-License-Identifier: Apache-2.0
// Packets that are too long for some interface on the way: what sends them ends, and says so.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "fabric/roce/testing/long_packet_checks.hpp"

namespace espalier::fabric::roce::long_packets {
namespace {

std::uint64_t long_packets_seed() { return base::seed_from_environment(97); }

TEST(RoceLongPackets, ThatAreLostEndTheirRequestsWhateverComesBehindThem) {
  for (const std::uint32_t behind : {0u, 1u, 20u}) {
    for (const Lost which : {Lost::to_far, Lost::both}) {
      EXPECT_EQ(ends(long_packets_seed(), Opcode::write, which, behind), "") << behind;
    }
    for (const Lost which : {Lost::to_near, Lost::both}) {
      EXPECT_EQ(ends(long_packets_seed(), Opcode::read, which, behind), "") << behind;
    }
  }
}

// Time is what counts: that a packet was lost a few times says nothing of its length.
TEST(RoceLongPackets, ThatAreLostForAWhileAreSentAgainUntilTheyComeThrough) {
  Scene scene(long_packets_seed());
  const RemoteRegion& region = scene.region.remote();
  std::vector<std::byte> bytes(3000);
  const std::array requests{
      WorkRequest::write(1, bytes, region.key, region.at(0)),
      WorkRequest::write(2, std::span(bytes).first(8), region.key, region.at(0))};
  scene.lose(Lost::both);
  ASSERT_EQ(scene.near->post(requests).taken, 2u);
  const std::uint64_t until_ns = scene.network.now_ns() + Scene::kRetriesNs * 3 / 4;
  while (scene.network.now_ns() < until_ns) scene.turn();
  ASSERT_EQ(scene.near->state(), QueuePair::State::connected);
  scene.network.loses = nullptr;
  const std::uint64_t healed_ns = scene.network.now_ns();
  while (scene.near_queue.waiting() < 2 && scene.near->state() == QueuePair::State::connected) {
    scene.turn();
  }
  EXPECT_EQ(scene.near_queue.waiting(), 2u);
  EXPECT_LT(scene.network.now_ns() - healed_ns, Scene::kTimeoutNs);
  EXPECT_EQ(scene.near->undelivered_bytes(), 0u);
}

}  // namespace
}  // namespace espalier::fabric::roce::long_packets

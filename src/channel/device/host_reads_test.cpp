// SPDX-License-Identifier: Apache-2.0
// READs in flight when a device's reads end.
#include "channel/device/host_reads.hpp"

#include <gtest/gtest.h>

#include <array>
#include <coroutine>
#include <cstddef>
#include <span>
#include <utility>

#include "fabric/sim/testing/two_ends.hpp"

namespace espalier::device {
namespace {

// A destroyed reader frees what its READs write to, although other readers keep the queue pair.
TEST(HostReads, WriteNothingAfterTheyHaveFailed) {
  fabric::sim::World world(1);
  const auto host = world.add_node("host");
  ASSERT_TRUE(host->listen("host"));
  fabric::sim::End there(*host);
  fabric::sim::Offer memory(*host, 4096);
  memory.set_word(64, 7);
  auto link = client::SideLink::begin({world.add_node("device"), "host"}, {});
  ASSERT_TRUE(link);
  while ((*link)->pair().state() == fabric::QueuePair::State::connecting) {
    ASSERT_TRUE(world.step());
    const auto request = host->next_request();
    if (!request) continue;
    auto accepted = host->accept(*request, there.options, {});
    ASSERT_TRUE(accepted);
    there.pair = std::move(*accepted);
  }
  HostReads reads(std::move(*link));
  place::ReadPort* const port = reads.port(memory.region.remote());
  ASSERT_NE(port, nullptr);
  std::array<std::byte, 8> word{};
  base::ReadyQueue ready(1);
  place::LaneReads lane;
  lane.ready = &ready;
  lane.walk = std::noop_coroutine();
  port->want(lane, 64, word.data(), word.size());
  port->send(lane);
  reads.fail();
  EXPECT_TRUE(lane.failed);
  world.run_for(fabric::sim::kSecondNs);
  EXPECT_EQ(word, (std::array<std::byte, 8>{}));
}

}  // namespace
}  // namespace espalier::device

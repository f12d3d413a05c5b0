// SPDX-License-Identifier: Apache-2.0
// Many clients that connect and send nothing.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor_limit.hpp"
#include "fabric/shm/service.hpp"
#include "fabric/shm/testing/raw_peer.hpp"

namespace espalier::fabric::shm {
namespace {

using memory::Descriptor;

/// Waits until the far side closes the connection.
void expect_hang_up(const Descriptor& socket) {
  std::array<std::byte, 512> packet;
  Descriptor descriptors[2];
  const auto got = memory::receive_packet(socket.number(), packet, descriptors);
  EXPECT_TRUE(!got || *got == 0);
}

bool takes_messages(Connected& two) {
  std::array<std::byte, 5> into;
  const Receive receive{1, into};
  two.target.pair->post_receives({&receive, 1});
  const auto hello = bytes_of("hello");
  const Completion sent = two.run(WorkRequest::send(2, hello));
  const Completion received = two.next(two.target.receives);
  return sent.status == Status::success && received.status == Status::success &&
         text_of(into) == "hello";
}

// They take all places for pending connections. Established connections stay, later clients are
// refused, and after some seconds the places are free.
TEST(ShmUnknownPeersConcurrency, AFloodOfThemPassesByItself) {
  constexpr std::size_t kMany = Service::kKnockingMax;
  // Both ends of each are of this process.
  ASSERT_GE(base::raise_descriptor_limit(), 2 * kMany + 100);
  Connected two;
  const std::uint64_t begin = base::monotonic_ns();
  std::vector<Descriptor> unknown_peers;
  for (std::size_t i = 0; i != kMany; ++i) {
    unknown_peers.push_back(*memory::connect_packets(two.path()));
  }
  expect_hang_up(*memory::connect_packets(two.path()));
  EXPECT_TRUE(takes_messages(two));

  Side late;
  late.pair = *late.endpoint->connect(two.path(), late.options(), {});
  std::optional<ConnectRequest> request;
  until(late, two.target, [&] {
    request = two.target.endpoint->next_request();
    return request || late.pair->state() == QueuePair::State::error;
  });
  if (request) {
    // Only a machine on which this takes very long frees places before the last one comes.
    EXPECT_GE(base::monotonic_ns() - begin, Service::kHelloNs);
  } else {
    EXPECT_EQ(late.pair->ended_by(), Status::retry_exceeded);
  }
  late.pair.reset();

  for (const Descriptor& unknown_peer : unknown_peers) expect_hang_up(unknown_peer);
  EXPECT_TRUE(takes_messages(two));
  connect(late, two.target, two.path(), late.options(), two.target.options());
  EXPECT_EQ(late.pair->state(), QueuePair::State::connected);
}

}  // namespace
}  // namespace espalier::fabric::shm

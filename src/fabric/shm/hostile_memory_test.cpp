// SPDX-License-Identifier: Apache-2.0
// Peers that do not keep to the protocol: what they write into the shared memory ends their own
// connection, and nothing else.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <vector>

#include "base/random.hpp"
#include "fabric/shm/testing/raw_peer.hpp"

namespace espalier::fabric::shm {
namespace {

TEST(ShmHostileConcurrency, PiecesThatCannotBeEndTheConnection) {
  const std::uint32_t longest = wire::fabric_piece_bytes_max(kSlots);
  const wire::FabricPieceHead heads[] = {
      {0, 0, 0, {}, 0, 0, 0, 0},                           // no kind
      {0, 8, 5, {}, 0, 8, 0, 0},                           // more of nothing
      {0, 8, 6, {}, 0, 8, 0, 0},                           // no such kind
      {0, 8, 255, {}, 0, 8, 0, 0},                         // nor such
      {0, 9, 1, {}, 0, 8, 0, 0},                           // more than its message
      {0, 0, 1, {}, 0, 8, 0, 0},                           // nothing of something
      {0, 8, 1, {}, 0, kMessageBytesMax + 1, 0, 0},        // too long
      {0, longest + 1, 1, {}, 0, kMessageBytesMax, 0, 0},  // more than a piece holds
      {0, 0xFFFFFFFF, 1, {}, 0, 0xFFFFFFFF, 0, 0},         // far more
      {0, 8, 3, {}, 0, 8, 12345, 678},                     // to no region
      {0, 8, 3, {}, 0, kMessageBytesMax, 0, ~std::uint64_t{0}},
  };
  for (const auto& head : heads) {
    Raw raw;
    raw.join();
    std::array<std::byte, 8> into;
    const Receive receive{1, into};
    ASSERT_EQ(raw.target.pair->post_receives({&receive, 1}), 1u);
    raw.put(head);
    raw.wait_for_the_end();
    EXPECT_NE(raw.target.pair->ended_by(), Status::success);
    EXPECT_EQ(raw.target.take(raw.target.receives)->status, Status::flushed);
    raw.expect_others_are_served();
  }
}

TEST(ShmHostileConcurrency, TheNumbersOfAPeerCountOnlyIfTheyCanBeTrue) {
  for (const std::uint64_t done : {std::uint64_t{2}, ~std::uint64_t{0}}) {
    Raw raw;
    raw.join();
    const auto message = bytes_of("x");
    raw.target.pair->post(WorkRequest::send(1, message));
    base::store_shared(raw.side(offsetof(wire::FabricSide, credit)), ~std::uint64_t{0});
    base::store_shared(raw.side(offsetof(wire::FabricSide, starved)), ~std::uint64_t{0});
    base::store_shared(raw.side(offsetof(wire::FabricSide, sleeping)), ~std::uint32_t{0});
    base::store_shared(raw.side(offsetof(wire::FabricSide, done)), done);
    raw.wait_for_the_end();
    EXPECT_EQ(raw.target.pair->ended_by(), Status::remote_invalid);
    EXPECT_EQ(raw.target.take(raw.target.sends)->status, Status::flushed);
  }
}

TEST(ShmHostileConcurrency, AnEndForNoReasonIsOne) {
  Raw raw;
  raw.join();
  const auto message = bytes_of("x");
  raw.target.pair->post(WorkRequest::send(1, message));
  base::store_shared(raw.side(offsetof(wire::FabricSide, ended)), ~std::uint32_t{0});
  base::store_shared(raw.side(offsetof(wire::FabricSide, failure)), ~std::uint32_t{0});
  raw.socket.close();
  raw.wait_for_the_end();
  EXPECT_EQ(raw.target.pair->ended_by(), Status::remote_invalid);
  EXPECT_EQ(raw.target.take(raw.target.sends)->status, Status::remote_invalid);
}

TEST(ShmHostileConcurrency, GarbageInTheMemoryOfTheConnection) {
  base::Random random(base::seed_from_environment(31));
  for (int round = 0; round < 60; ++round) {
    Raw raw;
    raw.join();
    std::vector<std::byte> into(5000);
    for (std::uint64_t i = 0; i < 20; ++i) {
      const Receive receive{i, into};
      ASSERT_EQ(raw.target.pair->post_receives({&receive, 1}), 1u);
      raw.target.pair->post(WorkRequest::send(i, std::span(into).first(random.below(5000))));
    }
    for (int step = 0; step < 200 && raw.target.pair->state() == QueuePair::State::connected;
         ++step) {
      // Heads that are nearly good, everywhere, and words of any kind.
      const std::uint64_t slot = random.below(round % 2 == 0 ? 4 : kSlots);
      wire::FabricPieceHead head{};
      head.sequence = wire::fabric_sequence(slot);
      head.bytes = static_cast<std::uint32_t>(random.below(100));
      head.kind = static_cast<std::uint8_t>(random.below(7));
      head.message_bytes = static_cast<std::uint32_t>(random.below(200));
      const auto words = std::bit_cast<std::array<std::uint64_t, 4>>(head);
      for (std::size_t i = 0; i < 4; ++i) {
        base::store_shared(raw.ring() + slot * 64 + 8 * i, words[i]);
      }
      if (random.chance(0.1)) {
        base::store_shared(raw.side(8 * random.below(16)), random() >> random.below(64));
      }
      raw.target.endpoint->progress();
      raw.target.endpoint->wait(0);
      Completion completions[8];
      static_cast<void>(raw.target.sends.poll(completions));
      static_cast<void>(raw.target.receives.poll(completions));
    }
    raw.socket.close();
    raw.wait_for_the_end();
  }
}

}  // namespace
}  // namespace espalier::fabric::shm

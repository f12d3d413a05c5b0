// SPDX-License-Identifier: Apache-2.0
// Messages and the receives that they take, over the simulated fabric.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "fabric/sim/testing/two_ends.hpp"

namespace espalier::fabric::sim {
namespace {

using Room = std::array<std::uint64_t, 2>;

std::span<const std::byte> bytes_of_room(const Room& room) {
  return std::as_bytes(std::span(room));
}
Receive receive_into(std::uint64_t id, Room& room) {
  return {id, std::as_writable_bytes(std::span(room))};
}

TEST(SimReceive, MessagesComeOnceAndInOrder) {
  Faults faults = Faults::harsh();
  faults.duplication = 0.3;
  std::uint64_t refused = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    TwoEnds ends(seed, faults);
    if (!ends.connect()) continue;
    std::vector<Room> sent(50);
    std::vector<Room> rooms(50);
    for (std::uint32_t i = 0; i < 50; ++i) {
      sent[i] = {i, i};
      const auto message = bytes_of_room(sent[i]).first(8 + i % 9);
      ends.a.pair->post(i % 2 == 0 ? WorkRequest::send(i, message)
                                   : WorkRequest::send_immediate(i, message, 1000 + i));
      const Receive receive = receive_into(i, rooms[i]);
      ends.b.pair->post_receives({&receive, 1});
    }
    ASSERT_TRUE(ends.a.wait_completed(ends.world, 50));
    if (ends.a.completions.back().status != Status::success) continue;
    ends.b.poll();
    ASSERT_EQ(ends.b.received.size(), 50u);
    for (std::uint32_t i = 0; i < 50; ++i) {
      const Completion& got = ends.b.received[i];
      EXPECT_EQ(got.status, Status::success);
      EXPECT_EQ(got.opcode, Opcode::receive);
      EXPECT_EQ(got.work_id, i);
      EXPECT_EQ(got.bytes, 8 + i % 9);
      EXPECT_EQ(got.with_immediate, i % 2 == 1);
      EXPECT_EQ(got.immediate, i % 2 == 1 ? 1000 + i : 0);
      EXPECT_EQ(rooms[i][0], i);
    }
    refused += ends.world.counts().duplicates_refused;
  }
  EXPECT_GT(refused, 0u);
}

TEST(SimReceive, ASendWaitsForAReceive) {
  TwoEnds ends;
  ASSERT_TRUE(ends.connect());
  Room sent{1, 2};
  ends.a.pair->post(WorkRequest::send(1, bytes_of_room(sent)));
  // What is behind it waits too.
  ends.a.pair->post(
      WorkRequest::write(2, bytes_of_room(sent), ends.memory.key(), ends.memory.remote(0)));
  ends.world.run_for(20 * ends.a.options.timeout_ns);
  ends.a.poll();
  EXPECT_TRUE(ends.a.completions.empty());
  EXPECT_EQ(ends.memory.word(0), 0u);
  EXPECT_GT(ends.world.counts().receiver_not_ready, 7u);
  Room room{};
  const Receive receive = receive_into(3, room);
  ends.b.pair->post_receives({&receive, 1});
  ASSERT_TRUE(ends.a.wait_completed(ends.world, 2));
  EXPECT_EQ(ends.a.completions[1].status, Status::success);
  EXPECT_EQ(room, sent);
  EXPECT_EQ(ends.memory.word(8), 2u);
}

TEST(SimReceive, ItWaitsOnlySoOften) {
  for (const std::uint32_t tries : {0u, 1u, 6u}) {
    TwoEnds ends;
    ends.a.options.receive_retries = tries;
    ASSERT_TRUE(ends.connect());
    Room sent{1, 2};
    ends.a.pair->post(WorkRequest::write_immediate(1, bytes_of_room(sent), ends.memory.key(),
                                                   ends.memory.remote(0), 5));
    ends.a.pair->post(WorkRequest::send(2, bytes_of_room(sent)));
    ASSERT_TRUE(ends.a.wait_completed(ends.world, 2));
    EXPECT_EQ(ends.a.completions[0].status, Status::no_receive);
    EXPECT_EQ(ends.a.completions[1].status, Status::flushed);
    EXPECT_EQ(ends.a.pair->ended_by(), Status::no_receive);
    EXPECT_EQ(ends.world.counts().receiver_not_ready, tries + 1);
    EXPECT_EQ(ends.world.counts().no_receive, 1u);
    EXPECT_EQ(ends.memory.word(0), 0u);
    EXPECT_TRUE(ends.b.wait_ended(ends.world));
  }
}

TEST(SimReceive, AMessageLongerThanItsReceiveEndsBothPairs) {
  TwoEnds ends;
  ASSERT_TRUE(ends.connect());
  auto& [world, a_endpoint, b_endpoint, a, b, memory] = ends;
  Room sent{1, 2};
  Room room{};
  const std::vector<Receive> receives{{1, std::as_writable_bytes(std::span(room)).first(15)},
                                      receive_into(2, room)};
  b.pair->post_receives(receives);
  std::uint64_t seen = 9;
  a.pair->post(WorkRequest::read(5, std::as_writable_bytes(std::span(&seen, 1)), memory.key(),
                                 memory.remote(0)));
  a.pair->post(WorkRequest::send(6, bytes_of_room(sent)));
  a.pair->post(WorkRequest::send(7, bytes_of_room(sent)));
  ASSERT_TRUE(a.wait_completed(world, 3));
  EXPECT_EQ(a.completions[0].status, Status::success);
  EXPECT_EQ(seen, 0u);
  EXPECT_EQ(a.completions[1].status, Status::remote_invalid);
  EXPECT_EQ(a.completions[2].status, Status::flushed);
  b.poll();
  ASSERT_EQ(b.received.size(), 2u);
  EXPECT_EQ(b.received[0].status, Status::local_length);
  EXPECT_EQ(b.received[1].status, Status::flushed);
  EXPECT_EQ(b.pair->ended_by(), Status::local_length);
  EXPECT_EQ(a.pair->ended_by(), Status::remote_invalid);
  EXPECT_EQ(room, (Room{}));
}

TEST(SimReceive, SharedReceivesAreTakenByWhoComesFirst) {
  TwoEnds ends(2, Faults::harsh());
  auto& [world, a_endpoint, b_endpoint, a, b, memory] = ends;
  ReceiveQueue shared(b.receives, 8);
  b.options.shared_receives = &shared;
  End a2(*a_endpoint);
  End b2(*b_endpoint);
  b2.options.receives = &b.receives;
  b2.options.shared_receives = &shared;
  ASSERT_TRUE(ends.connect());
  ASSERT_TRUE(connect(world, a2, b2, "b"));
  std::vector<Room> rooms(8);
  for (std::uint64_t i = 0; i < 8; ++i) {
    const Receive receive = receive_into(i, rooms[i]);
    EXPECT_EQ(shared.post({&receive, 1}), 1u);
  }
  Room from_a{1, 0};
  Room from_a2{2, 0};
  for (int i = 0; i < 4; ++i) {
    a.pair->post(WorkRequest::send(1, bytes_of_room(from_a)));
    a2.pair->post(WorkRequest::send(2, bytes_of_room(from_a2)));
  }
  ASSERT_TRUE(b.wait_received(world, 8));
  for (const Completion& got : b.received) {
    EXPECT_EQ(rooms[got.work_id][0], got.pair == b.pair->number() ? 1u : 2u);
  }
  EXPECT_EQ(shared.posted(), 0u);
}

TEST(SimReceive, AReceiveThatIsHalfFilledIsGivenBackOrFlushed) {
  for (const bool close : {true, false}) {
    std::size_t half = 0;
    for (std::uint64_t moment = 0; moment < 4'000; moment += 100) {
      TwoEnds ends;
      auto& [world, a_endpoint, b_endpoint, a, b, memory] = ends;
      CompletionQueue two(*b_endpoint, 2);
      ReceiveQueue shared(two, 2);
      b.options.receives = &two;
      b.options.shared_receives = &shared;
      ASSERT_TRUE(ends.connect());
      Room room{};
      const Receive receive = receive_into(1, room);
      ASSERT_EQ(shared.post({&receive, 1}), 1u);
      a.pair->post(WorkRequest::send(1, bytes_of_room(room)));
      world.run_for(moment);
      const bool taken = shared.posted() == 0 && two.waiting() == 0;
      half += taken;
      const std::size_t completion = two.waiting() + (close && taken);
      if (close) b.pair->close();
      b.pair.reset();
      EXPECT_EQ(two.waiting(), completion);
      const std::size_t free = 2 - two.waiting() - shared.posted();
      for (std::size_t i = 0; i < free; ++i) EXPECT_TRUE(two.reserve());
      EXPECT_FALSE(two.reserve());
      for (std::size_t i = 0; i < free; ++i) two.release();
    }
    EXPECT_GT(half, 0u);
  }
}

}  // namespace
}  // namespace espalier::fabric::sim

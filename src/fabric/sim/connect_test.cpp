// SPDX-License-Identifier: Apache-2.0
// How simulated pairs are connected, and how they end.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "fabric/sim/testing/two_ends.hpp"

namespace espalier::fabric::sim {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
std::vector<std::byte> bytes_of(std::span<const std::byte> data) {
  return {data.begin(), data.end()};
}

TEST(SimConnect, BothSidesHearWhatTheOtherSaid) {
  TwoEnds ends;
  auto& [world, a_endpoint, b_endpoint, a, b, memory] = ends;
  a.pair = *a_endpoint->connect("b", a.options, bytes_of("from a"));
  EXPECT_EQ(a.pair->state(), QueuePair::State::connecting);
  std::optional<ConnectRequest> request;
  ASSERT_TRUE(b.wait_until(world, [&] { return (request = b_endpoint->next_request()); }));
  EXPECT_EQ(request->peer, "a");
  EXPECT_EQ(request->data, bytes_of("from a"));
  b.pair = *b_endpoint->accept(*request, b.options, bytes_of("from b"));
  EXPECT_EQ(bytes_of(b.pair->peer_data()), bytes_of("from a"));
  ASSERT_TRUE(a.wait_until(world, [&] { return a.pair->state() == QueuePair::State::connected; }));
  EXPECT_EQ(bytes_of(a.pair->peer_data()), bytes_of("from b"));
  EXPECT_FALSE(b_endpoint->next_request());
  EXPECT_EQ(b_endpoint->accept(*request, b.options, {}).error().code, Code::not_found);
}

TEST(SimConnect, WhatIsAskedWronglyIsRefusedAtOnce) {
  TwoEnds ends;
  auto& endpoint = *ends.a_endpoint;
  const auto& options = ends.a.options;
  EXPECT_EQ(endpoint.connect("", options, {}).error().code, Code::invalid_argument);
  EXPECT_EQ(endpoint.connect("b", {}, {}).error().code, Code::invalid_argument);
  const std::vector<std::byte> much(kConnectDataMax + 1);
  EXPECT_EQ(endpoint.connect("b", options, much).error().code, Code::invalid_argument);
  EXPECT_EQ(endpoint.listen("").error().code, Code::invalid_argument);
  EXPECT_EQ(endpoint.listen("b").error().code, Code::already_exists);
  EXPECT_TRUE(endpoint.listen("another name").has_value());
}

TEST(SimConnect, RejectedAndUnansweredPairsEnd) {
  TwoEnds ends;
  ends.a.pair = *ends.a_endpoint->connect("b", ends.a.options, {});
  std::optional<ConnectRequest> request;
  ASSERT_TRUE(
      ends.b.wait_until(ends.world, [&] { return (request = ends.b_endpoint->next_request()); }));
  // While the request is undecided, the connecting side waits.
  ends.world.run_for(100 * ends.a.options.timeout_ns);
  EXPECT_EQ(ends.a.pair->state(), QueuePair::State::connecting);
  ends.b_endpoint->reject(*request);
  ASSERT_TRUE(ends.a.wait_ended(ends.world));
  EXPECT_EQ(ends.a.pair->ended_by(), Status::remote_operation);

  ends.a.pair = *ends.a_endpoint->connect("nobody", ends.a.options, {});
  const std::byte byte{};
  EXPECT_EQ(ends.a.pair->post(WorkRequest::send(7, {&byte, 1})).taken, 1u);
  ASSERT_TRUE(ends.a.wait_completed(ends.world, 1));
  EXPECT_EQ(ends.a.completions[0].status, Status::flushed);
  EXPECT_EQ(ends.a.pair->ended_by(), Status::retry_exceeded);
  EXPECT_EQ(ends.world.counts().retry_exceeded, 1u);
}

TEST(SimConnect, WhoGivesUpIsNotAccepted) {
  TwoEnds ends;
  ends.a.pair = *ends.a_endpoint->connect("b", ends.a.options, {});
  std::optional<ConnectRequest> request;
  ASSERT_TRUE(
      ends.b.wait_until(ends.world, [&] { return (request = ends.b_endpoint->next_request()); }));
  ends.a.pair.reset();
  ends.world.run_for(1'000'000);
  EXPECT_EQ(ends.b_endpoint->accept(*request, ends.b.options, {}).error().code, Code::not_found);

  // Here the acceptance and the giving up pass each other.
  ends.a.pair = *ends.a_endpoint->connect("b", ends.a.options, {});
  ASSERT_TRUE(
      ends.b.wait_until(ends.world, [&] { return (request = ends.b_endpoint->next_request()); }));
  ends.b.pair = *ends.b_endpoint->accept(*request, ends.b.options, {});
  ends.a.pair->close();
  EXPECT_TRUE(ends.b.wait_ended(ends.world));
  EXPECT_EQ(ends.b.pair->ended_by(), Status::success);
}

TEST(SimConnect, OneConnectionIsMadeHoweverManyMessagesAreLost) {
  Faults faults = Faults::harsh();
  faults.loss = 0.3;
  faults.duplication = 0.3;
  std::uint64_t lost = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    TwoEnds ends(seed, faults);
    if (!ends.connect()) continue;  // all tries were lost
    EXPECT_FALSE(ends.b_endpoint->next_request()) << seed;
    ends.a.pair->close();
    ends.b.wait_ended(ends.world);
    EXPECT_EQ(ends.b.pair->state(), QueuePair::State::error) << seed;
    lost += ends.world.counts().lost;
  }
  EXPECT_GT(lost, 0u);
}

TEST(SimConnect, WhatIsPostedWhileConnectingIsDoneThen) {
  TwoEnds ends;
  ends.a.pair = *ends.a_endpoint->connect("b", ends.a.options, {});
  std::uint64_t word = 5;
  ends.a.pair->post(WorkRequest::write(1, std::as_bytes(std::span(&word, 1)), ends.memory.key(),
                                       ends.memory.remote(0)));
  std::optional<ConnectRequest> request;
  ASSERT_TRUE(
      ends.b.wait_until(ends.world, [&] { return (request = ends.b_endpoint->next_request()); }));
  ends.b.pair = *ends.b_endpoint->accept(*request, ends.b.options, {});
  // So may the side that was asked, which does not know yet whether its answer has come.
  std::array<std::byte, 8> message{};
  ends.b.pair->post(WorkRequest::send(2, message));
  ends.a.pair->post_receives(std::vector<Receive>{{3, message}});
  ASSERT_TRUE(ends.a.wait_completed(ends.world, 1));
  ASSERT_TRUE(ends.a.wait_received(ends.world, 1));
  EXPECT_EQ(ends.memory.word(0), 5u);
}

TEST(SimConnect, CloseFlushesBothSides) {
  TwoEnds ends;
  ASSERT_TRUE(ends.connect());
  auto& [world, a_endpoint, b_endpoint, a, b, memory] = ends;
  std::array<std::byte, 64> bytes{};
  for (std::uint64_t i = 0; i < 3; ++i) {
    a.pair->post(WorkRequest::read(i, bytes, memory.key(), memory.remote(0)));
    b.pair->post(WorkRequest::send(i, bytes));
  }
  b.pair->post_receives(std::vector<Receive>{{10, bytes}, {11, bytes}});
  a.pair->close();
  EXPECT_EQ(a.pair->state(), QueuePair::State::error);
  a.poll();
  ASSERT_EQ(a.completions.size(), 3u);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(a.completions[i].work_id, i);
    EXPECT_EQ(a.completions[i].status, Status::flushed);
  }
  ASSERT_TRUE(b.wait_ended(world));
  EXPECT_EQ(b.pair->ended_by(), Status::success);
  b.poll();
  ASSERT_EQ(b.completions.size(), 3u);
  ASSERT_EQ(b.received.size(), 2u);
  EXPECT_EQ(b.completions[2].status, Status::flushed);
  EXPECT_EQ(b.received[1].status, Status::flushed);
  EXPECT_EQ(b.received[1].work_id, 11u);
  // What is posted later is flushed too.
  EXPECT_EQ(a.pair->post(WorkRequest::send(9, bytes).unsignalled()).taken, 1u);
  a.poll();
  EXPECT_EQ(a.completions.back().work_id, 9u);
  EXPECT_EQ(a.completions.back().status, Status::flushed);
}

TEST(SimConnect, APairThatIsDestroyedGivesItsPlacesBack) {
  TwoEnds ends;
  ASSERT_TRUE(ends.connect());
  auto& [world, a_endpoint, b_endpoint, a, b, memory] = ends;
  CompletionQueue few(*a_endpoint, 4);
  a.options.sends = &few;
  a.options.receives = &few;
  std::array<std::byte, 64> bytes{};
  for (int i = 0; i < 5; ++i) {
    a.pair.reset();
    ASSERT_TRUE(connect(world, a, b, "b"));
    EXPECT_EQ(a.pair->post_receives(std::vector<Receive>(2, Receive{1, bytes})), 2u);
    const std::vector<WorkRequest> three(
        3, WorkRequest::read(1, bytes, memory.key(), memory.remote(0)));
    const Posted posted = a.pair->post(three);
    EXPECT_EQ(posted.taken, 2u) << i;
    EXPECT_EQ(posted.stopped, Posted::Stopped::full);
    // At different moments: while they wait, are on their way, or have half come.
    b.pair->post(WorkRequest::send(1, bytes));
    world.run_for(static_cast<std::uint64_t>(i) * 700);
    EXPECT_LE(few.waiting(), 4u);
    Completion some[4];
    few.poll(some);
  }
  a.pair.reset();
  EXPECT_TRUE(few.reserve() && few.reserve() && few.reserve() && few.reserve());
  for (int i = 0; i < 4; ++i) few.release();
}

}  // namespace
}  // namespace espalier::fabric::sim

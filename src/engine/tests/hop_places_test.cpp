// SPDX-License-Identifier: Apache-2.0
// Places of requests that come through other nodes: neither clients' requests nor requests over
// fewer hops take them.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/scheduler.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"

namespace espalier::offload {
namespace {

bool holds_may_go = false;
std::uint32_t holds_begun = 0;

/// Keeps its place until the test releases it.
struct HoldState {
  bool begun = false;
};

Next hold_place(Call& call) {
  if (!std::exchange(call.state<HoldState>().begun, true)) ++holds_begun;
  return holds_may_go ? call.answer({}) : call.again();
}

constexpr auto kHold = static_cast<wire::OffloadId>(wire::kOwnOffloadIds);
const Offload kHoldCalls[] = {{{.id = kHold,
                                .name = "hold",
                                .format = "",
                                .summary = "keeps its place",
                                .right = Right::none,
                                .limits = {}},
                               {.step = hold_place}}};
constexpr wire::ConnectionLayout kHopRings{512, 512, 1};
constexpr std::uint32_t kHopsMost = wire::kHopRequestsMax;

class HopPlaces : public ::testing::Test {
 protected:
  HopPlaces() : serving_({}, std::uint64_t{64} << 20, kHoldCalls) {
    holds_may_go = false;
    holds_begun = 0;
  }
  ~HopPlaces() override { holds_may_go = true; }
  void post(SchedulerFixture::Client& client, wire::OffloadId offload, unsigned hops,
            std::uint32_t argument = 0) {
    wire::RequestHeader header = request_of(offload, 0, ++tag_, argument);
    header.ring = static_cast<std::uint8_t>(hops << wire::kHopShift);
    client->post(message_of(header));
    client->flush();
    client->ring();
  }
  void hold_many(SchedulerFixture::Client& client, std::uint32_t count, unsigned hops) {
    for (std::uint32_t i = 0; i < count; ++i) post(client, kHold, hops);
    serving_.turns(20);
  }
  /// Takes all places that clients can have.
  void fill_with_clients() {
    for (int i = 0; i < 4; ++i) hold_many(serving_.connect(kHopRings, 2), 200, 0);
    ASSERT_TRUE(serving_.run_until([] { return holds_begun >= Scheduler::kInFlight; }));
    holds_begun = 0;
  }
  /// Whether a request is answered, although others keep their places.
  bool is_answered(SchedulerFixture::Client& client, unsigned hops,
                   wire::OffloadId offload = wire::OffloadId::object_list) {
    post(client, offload, hops);
    bool answered = false;  // the condition is evaluated again after it holds
    return serving_.run_until([&] { return answered = answered || client->receive(); });
  }

  SchedulerFixture serving_;
  std::uint32_t tag_ = 0;
};

TEST_F(HopPlaces, ClientsTakeNone) {
  fill_with_clients();
  ASSERT_FALSE(HasFatalFailure());
  auto& client = serving_.connect();
  post(client, wire::OffloadId::noop, 0);
  serving_.turns(300);
  EXPECT_FALSE(client->receive());
  auto& node = serving_.connect();
  EXPECT_TRUE(is_answered(node, 1));
  EXPECT_TRUE(is_answered(node, 2));
  EXPECT_TRUE(is_answered(serving_.connect(), 2));
}

// In one ring: a request without a place waits aside.
TEST_F(HopPlaces, RequestsOfFewerHopsTakeNoneOfMore) {
  auto& node = serving_.connect(kHopRings);
  hold_many(node, kHopsMost, 1);
  EXPECT_EQ(holds_begun, Scheduler::kHopPlaces);
  auto& other = serving_.connect(kHopRings);
  hold_many(other, kHopsMost, 1);
  EXPECT_EQ(holds_begun, Scheduler::kHopPlaces + 1) << "each session has one, whatever others have";
  EXPECT_TRUE(is_answered(other, 2));
  EXPECT_TRUE(is_answered(serving_.connect(), 0));
  EXPECT_TRUE(is_answered(other, 2, wire::OffloadId::noop));
  holds_may_go = true;
  std::uint32_t answered = 0;
  EXPECT_TRUE(serving_.run_until([&] {
    while (node->receive()) ++answered;
    while (other->receive()) ++answered;
    return answered == 2 * kHopsMost;
  }));
}

// A session needs no more than that; if it sends more, its own requests wait.
TEST_F(HopPlaces, OfOneSessionButSoManyAreTaken) {
  auto& node = serving_.connect(kHopRings);
  hold_many(node, 2 * kHopsMost, 2);
  EXPECT_EQ(node.connection->taken[2], kHopsMost);
  EXPECT_FALSE(serving_.scheduler().has_news()) << "nothing of what waits could be taken";
  EXPECT_TRUE(is_answered(serving_.connect(), 2));
  holds_may_go = true;
  std::uint32_t answered = 0;
  EXPECT_TRUE(serving_.run_until([&] {
    while (node->receive()) ++answered;
    return answered == 2 * kHopsMost;
  }));
  EXPECT_EQ(node.connection->taken[2], 0u);
}

TEST_F(HopPlaces, ANoopThatAsksWhetherTheNodeIsThereTakesNone) {
  auto& node = serving_.connect(kHopRings);
  hold_many(node, kHopsMost, 2);
  auto& other = serving_.connect(kHopRings);
  hold_many(other, 2, 2);  // of which one waits
  EXPECT_TRUE(is_answered(other, 2, wire::OffloadId::noop));
}

TEST_F(HopPlaces, WhatWaitsForOneEndsWithItsClient) {
  auto& node = serving_.connect(kHopRings);
  hold_many(node, kHopsMost, 1);
  auto& other = serving_.connect(kHopRings);
  hold_many(other, 10, 1);
  serving_.disconnect(other);
  holds_may_go = true;
  EXPECT_TRUE(serving_.run_until_idle());
  EXPECT_TRUE(other.ended);
  EXPECT_TRUE(is_answered(serving_.connect(), 1));
}

// Its answer is not awaited any more, so it takes no place later.
TEST_F(HopPlaces, WhatIsCancelledBeforeItHasOneNeverBegins) {
  auto& node = serving_.connect(kHopRings);
  hold_many(node, kHopsMost, 1);
  auto& other = serving_.connect(kHopRings);
  hold_many(other, 4, 1);  // of which three wait
  ASSERT_EQ(other.connection->without_place_count, 3u);
  const std::uint32_t cancelled = tag_ - 1;  // one between others
  post(other, wire::OffloadId::cancel, 2, cancelled);
  std::map<std::uint32_t, Code> answers;
  const auto answered = [&](std::size_t count) {
    return serving_.run_until([&] {
      while (const auto response = other->receive()) {
        answers[response->header.tag] = static_cast<Code>(response->header.code);
      }
      return answers.size() == count;
    });
  };
  ASSERT_TRUE(answered(2));
  EXPECT_EQ(answers.at(cancelled), Code::busy);
  EXPECT_EQ(answers.at(tag_), Code::invalid) << "the cancel itself";
  EXPECT_EQ(other.connection->without_place_count, 2u);
  EXPECT_EQ(other.connection->taken[1], 3u);
  holds_may_go = true;
  EXPECT_TRUE(answered(5));
  EXPECT_TRUE(serving_.run_until_idle());
  EXPECT_EQ(holds_begun, kHopsMost + 3);
  EXPECT_EQ(other.connection->taken[1], 0u);
}

// Its ring is watched by its doorbell only, which does not ring again for requests taken before.
TEST_F(HopPlaces, WhatWaitedForItsClientIsNotForgottenWithoutAPlace) {
  auto& node = serving_.connect(kLongRequests);
  std::uint32_t noops = 0;
  for (; node.connection->ring(0).backlog_bytes() == 0; ++noops) {
    ASSERT_LT(noops, 512u);
    post(node, wire::OffloadId::noop, 0);
    serving_.turns(2);
  }
  post(node, kHold, 1);
  post(node, kHold, 1);
  for (int i = 0; i < 40; ++i) serving_.connect();
  ASSERT_TRUE(serving_.run_until([&] { return !node.connection->watched; }));
  ASSERT_EQ(node.connection->stalled_count, 2u);
  auto& other = serving_.connect(kHopRings);
  hold_many(other, kHopsMost, 1);
  std::uint32_t answered = 0;
  const auto all_came = [&](std::uint32_t wanted) {
    return serving_.run_until([&] {
      while (node->receive()) ++answered;
      return answered == wanted && node.connection->stalled_count == 0;
    });
  };
  EXPECT_TRUE(all_came(noops));
  EXPECT_EQ(node.connection->without_place_count, 1u);
  holds_may_go = true;
  EXPECT_TRUE(all_came(noops + 2));
}

}  // namespace
}  // namespace espalier::offload

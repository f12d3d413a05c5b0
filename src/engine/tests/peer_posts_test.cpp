// SPDX-License-Identifier: Apache-2.0
// Requests whose steps post to other nodes, over scripted links.
#include "engine/peer_posts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "engine/principal.hpp"
#include "engine/principal_accounts.hpp"
#include "engine/tests/testing/manual_link.hpp"
#include "engine/tests/testing/peer_posts_world.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"

namespace espalier::offload {
namespace {

using fabric::PostEnd;
using fabric::Status;

std::vector<ManualLink*> links;
int steps_after_ends = 0;
bool throws = false;

/// Reads from peer 0 as often as the argument says, and writes once to peer 1; its key is the
/// address. The answer has a letter for each completion.
struct CopyState {
  std::uint64_t words[PostsOfRequest::kMost] = {};
};

Next copy(Call& call) {
  if (const auto ends = peer_ends(call); !ends.empty()) {
    ++steps_after_ends;
    std::string letters;
    for (const auto& end : ends) letters += "drun"[static_cast<std::size_t>(end.how)];
    return call.answer({}, {letters});
  }
  auto& state = call.state<CopyState>();
  PeerBatch batch(call);
  const std::uint64_t address = std::strtoull(std::string(call.key()).c_str(), nullptr, 10);
  for (std::uint32_t i = 0; i < call.argument(); ++i) {
    batch.read(0, 1, std::as_writable_bytes(std::span(&state.words[i], 1)), 7, address + i);
  }
  batch.write(1, 1, std::as_bytes(std::span(&state.words[0], 1)), 7, address);
  if (throws) throw std::bad_alloc();
  return batch.completed();
}

/// Calls peer 0 with its own payload, and answers with the peer's answer; then once more.
struct ForwardState {
  wire::CallMessage message;
  channel::PeerAnswer answer;
  std::byte into[8] = {};
  int times = 0;
};

Next forward(Call& call) {
  auto& state = call.state<ForwardState>();
  if (state.times == 2) {
    const std::size_t bytes = std::min(state.answer.payload_bytes, sizeof state.into);
    return call.answer(state.answer.header, {{reinterpret_cast<const char*>(state.into), bytes}});
  }
  ++state.times;
  state.message.payload = call.payload();
  state.answer.into = state.into;
  PeerBatch batch(call);
  batch.call(0, channel::PeerLink::kAnySession, state.message, state.answer);
  return batch.completed();
}

/// Calls peer 0 once, and answers a letter for the completion, as copy() does.
struct CallState {
  wire::CallMessage message{.payload = "called"};
  channel::PeerAnswer answer;
};

Next call_once(Call& call) {
  if (const auto ends = peer_ends(call); !ends.empty()) {
    return call.answer({}, {std::string(1, "drun"[static_cast<std::size_t>(ends[0].how)])});
  }
  auto& state = call.state<CallState>();
  PeerBatch batch(call);
  batch.call(0, channel::PeerLink::kAnySession, state.message, state.answer);
  return batch.completed();
}

void make_peers(TypedSlots<NodePart>& parts) {
  const auto make = [](std::function<void()> wake) -> std::unique_ptr<channel::PeerLink> {
    auto link = std::make_unique<ManualLink>(std::move(wake));
    links.push_back(link.get());
    return link;
  };
  parts.make<NodePeers>(std::vector<NodePeers::Peer>{{"b", make}, {"c", make}});
}

constexpr auto kCopy = static_cast<wire::OffloadId>(wire::kOwnOffloadIds);
constexpr auto kForward = static_cast<wire::OffloadId>(wire::kOwnOffloadIds + 1);
constexpr auto kCallOnce = static_cast<wire::OffloadId>(wire::kOwnOffloadIds + 2);
const Offload kPostingCalls[] = {
    {{.id = kCopy,
      .name = "copy",
      .format = "",
      .summary = "reads and writes at peers",
      .right = Right::none,
      .limits = {.key_bytes_min = 0, .key_bytes_max = 20, .payload_bytes_max = 0}},
     {.step = copy, .executor = &kPeerPosts}},
    {{.id = kForward,
      .name = "forward",
      .format = "",
      .summary = "calls a peer",
      .right = Right::none,
      .limits = {.key_bytes_max = 0, .payload_bytes_max = 100}},
     {.step = forward, .executor = &kPeerPosts}},
    {{.id = kCallOnce,
      .name = "call_once",
      .format = "",
      .summary = "calls a peer once",
      .right = Right::none,
      .limits = {.key_bytes_max = 0, .payload_bytes_max = 0}},
     {.step = call_once, .executor = &kPeerPosts}}};

class PeerPostsFixture : public ::testing::Test {
 protected:
  PeerPostsFixture() {
    links.clear();
    steps_after_ends = 0;
    throws = false;
    FixtureOptions options;
    options.make_part = make_peers;
    serving_ = std::make_unique<SchedulerFixture>(options, std::uint64_t{64} << 20, kPostingCalls);
    client_ = &serving_->connect();
  }
  ~PeerPostsFixture() override {
    for (ManualLink* const link : links) {
      link->full_for_hops = 0;
      link->depth = 10'000;
    }
    for (int turn = 0; turn < 1'000 && !serving_->scheduler().idle(); ++turn) {
      end_all();
      serving_->turn();
    }
  }
  ManualLink& b() { return *links.at(0); }
  ManualLink& c() { return *links.at(1); }
  void ask(std::uint32_t reads, const std::string& address = "0") {
    (*client_)->post(message_of(request_of(kCopy, 0, tag_++, reads), address));
    (*client_)->ring();
  }
  /// The same over so many hops, with any call; `name`: the principal on whose behalf a device
  /// calls.
  void ask_over(std::uint8_t hops, wire::OffloadId offload, std::uint32_t reads = 0,
                std::string_view name = {}) {
    wire::RequestHeader header = request_of(offload, 0, tag_++, reads);
    header.ring = static_cast<std::uint8_t>(hops << wire::kHopShift);
    if (!name.empty()) header.ring |= wire::kOnBehalf;
    const std::string principal =
        name.empty() ? std::string() : bytes_of(PrincipalView{Right::admin, name, ""});
    (*client_)->post(message_of(header, {}, principal));
    (*client_)->flush();
    (*client_)->ring();
  }
  std::string letters() { return serving_->wait(*client_).payload; }
  void end_all() {
    for (ManualLink* const link : links) {
      while (link->to_end.size() < link->in_flight.size()) link->end();
    }
  }
  /// Runs turns and completes posts until so many answers have arrived, all with these letters.
  void expect_answers(std::uint32_t count, std::string_view letters) {
    std::uint32_t answered = 0;
    bool wrong = false;
    EXPECT_TRUE(serving_->run_until([&] {
      end_all();
      (*client_)->flush();
      (*client_)->ring();
      while (const auto response = (*client_)->receive()) {
        wrong = wrong || response->payload != letters;
        ++answered;
      }
      return wrong || answered >= count;
    }));
    EXPECT_FALSE(wrong);
    EXPECT_EQ(answered, count);
  }
  [[nodiscard]] std::uint32_t peer_waits(const std::string& principal) {
    return serving_->services().principals.of(principal)->peer_waits;
  }

  std::unique_ptr<SchedulerFixture> serving_;
  SchedulerFixture::Client* client_ = nullptr;
  std::uint32_t tag_ = 0;
};

TEST_F(PeerPostsFixture, AStepGoesOnWhenTheLastHasEnded) {
  ask(2);
  serving_->turns(3);
  ASSERT_EQ(b().in_flight.size(), 2u);
  ASSERT_EQ(c().in_flight.size(), 1u);
  b().end();
  c().end();
  serving_->turns(3);
  EXPECT_EQ(steps_after_ends, 0);
  b().end();
  EXPECT_EQ(letters(), "ddd");
}

TEST_F(PeerPostsFixture, EndsAreThereInTheOrderOfItsPosts) {
  ask(3);
  serving_->turns(3);
  c().end(PostEnd::not_sent, Status::flushed);
  b().end();
  b().end(PostEnd::refused, Status::remote_access);
  b().end(PostEnd::unknown, Status::flushed);
  EXPECT_EQ(letters(), "drun");
}

TEST_F(PeerPostsFixture, WhatATurnHasForAPeerLeavesByOneDoorbell) {
  for (int i = 0; i < 8; ++i) ask(3);
  serving_->turn();
  EXPECT_EQ(b().in_flight.size(), 24u);
  EXPECT_EQ(b().doorbells, 1);
  EXPECT_EQ(c().doorbells, 1);
}

// Posts wait in order of arrival, and posts to the other peer proceed.
TEST_F(PeerPostsFixture, AFullLinkKeepsOnlyItsOwnWaiting) {
  b().depth = 2;
  for (int i = 0; i < 3; ++i) ask(2, std::to_string(100 * i));
  serving_->turns(3);
  EXPECT_EQ(b().in_flight.size(), 2u);
  EXPECT_EQ(c().in_flight.size(), 3u);
  EXPECT_TRUE(serving_->scheduler().has_news());
  for (int i = 0; i < 3; ++i) c().end();
  for (int i = 0; i < 6; ++i) {
    b().end();
    serving_->turns(2);
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(letters(), "ddd");
  EXPECT_THAT(b().order, testing::ElementsAre(0, 1, 100, 101, 200, 201));
}

// So a link can send all of them or none, even if it had no room between two of them.
TEST_F(PeerPostsFixture, PostsOfOneStepOnAPeerBelongTogetherThere) {
  b().depth = 4;
  ask(3, "0");
  ask(2, "100");
  ask(1, "200");
  std::string together;
  while (together.size() < 6) {
    serving_->turns(3);
    ASSERT_FALSE(b().in_flight.empty());
    for (const ManualLink::Taken& taken : b().in_flight) together += taken.behind ? '+' : '|';
    for (const ManualLink::Taken& taken : c().in_flight) EXPECT_FALSE(taken.behind);
    end_all();
  }
  EXPECT_EQ(together, "|++|+|");
  for (const char* const wanted : {"dddd", "ddd", "dd"}) EXPECT_EQ(letters(), wanted);
}

// The fabric still writes into its state.
TEST_F(PeerPostsFixture, ARequestWhoseClientIsGoneStaysUntilItsPostsHaveEnded) {
  ask(1);
  serving_->turns(3);
  serving_->disconnect(*client_);
  serving_->turns(3);
  EXPECT_FALSE(client_->ended);
  c().end();
  serving_->turns(3);
  EXPECT_FALSE(client_->ended);
  b().end();
  serving_->turns(3);
  EXPECT_TRUE(client_->ended);
  EXPECT_EQ(steps_after_ends, 0);
}

TEST_F(PeerPostsFixture, AStepThatThrowsHasPostedNothing) {
  throws = true;
  ask(2);
  const Response response = serving_->wait(*client_);
  EXPECT_EQ(response.code(), Code::out_of_memory);
  EXPECT_EQ(b().in_flight.size() + c().in_flight.size(), 0u);
  throws = false;
  ask(1);
  serving_->turns(3);
  EXPECT_EQ(b().in_flight.size(), 1u);
}

TEST_F(PeerPostsFixture, AStepMayPostAgain) {
  (*client_)->post(message_of(request_of(kForward), {}, "hello"));
  (*client_)->ring();
  for (int round = 0; round < 2; ++round) {
    serving_->turns(3);
    ASSERT_EQ(b().in_flight.size(), 1u);
    EXPECT_EQ(b().in_flight.front().called, "hello");
    channel::PeerAnswer& answer = *b().in_flight.front().answer;
    ASSERT_EQ(answer.into.size(), 8u);
    answer.header.version = 17;
    answer.payload_bytes = 2;
    std::memcpy(answer.into.data(), "ok", 2);
    b().end();
  }
  const Response response = serving_->wait(*client_);
  EXPECT_EQ(response.header.version, 17u);
  EXPECT_EQ(response.payload, "ok");
}

TEST_F(PeerPostsFixture, MoreRequestsThanPlacesWait) {
  client_ = &serving_->connect(kLongRequests);
  b().depth = 8;
  for (std::uint32_t i = 0; i < 2 * Scheduler::kInFlight; ++i) ask(1, std::to_string(i));
  expect_answers(2 * Scheduler::kInFlight, "dd");
  EXPECT_TRUE(std::ranges::is_sorted(b().order));
}

// --- what waits for a peer counts aside ----------------------------------------------------------

TEST_F(PeerPostsFixture, RequestsThatWaitForASilentPeerLeavePlacesToOthers) {
  client_ = &serving_->connect(kLongRequests, 2);
  for (std::uint32_t i = 0; i < 3 * Scheduler::kInFlight; ++i) ask(1);
  serving_->turns(200);
  EXPECT_EQ(c().in_flight.size(), 3 * Scheduler::kInFlight);
  auto& other = serving_->connect(kSmallRings, 3);
  other->post(message_of(request_of(wire::OffloadId::noop)));
  other->ring();
  serving_->turns(20);
  EXPECT_TRUE(other->receive());
  expect_answers(3 * Scheduler::kInFlight, "dd");
  EXPECT_EQ(peer_waits(principal_of_user(2)), 0u);
}

// Over all its connections. Further requests stay in their rings, and are served in the end.
TEST_F(PeerPostsFixture, OfOnePrincipalButSoManyWaitForPeers) {
  constexpr std::uint32_t kClients = 4;
  constexpr std::uint32_t kEach = 500;
  std::vector<SchedulerFixture::Client*> clients;
  for (std::uint32_t i = 0; i < kClients; ++i) {
    clients.push_back(client_ = &serving_->connect(kLongRequests, 2));
    for (std::uint32_t request = 0; request < kEach; ++request) ask(1);
  }
  serving_->turns(500);
  EXPECT_EQ(peer_waits(principal_of_user(2)), Scheduler::kPeerWaitsMax);
  EXPECT_EQ(c().in_flight.size(), Scheduler::kPeerWaitsMax);
  client_ = &serving_->connect(kSmallRings, 3);
  ask(1);
  serving_->turns(20);
  EXPECT_EQ(peer_waits(principal_of_user(3)), 1u);
  expect_answers(1, "dd");
  std::uint32_t answered = 0;
  EXPECT_TRUE(serving_->run_until([&] {
    end_all();
    for (SchedulerFixture::Client* const client : clients) {
      (*client)->flush();
      (*client)->ring();
      while ((*client)->receive()) ++answered;
    }
    return answered == kClients * kEach;
  }));
}

// Over one connection of a device; beyond its share nothing is posted.
TEST_F(PeerPostsFixture, OfADevicesClientsEachHasItsShare) {
  constexpr std::uint32_t kMore = 10;
  client_ = &serving_->connect({4096, 4096, 1}, 2);
  for (std::uint32_t i = 0; i < Scheduler::kPeerWaitsMax; ++i) ask_over(0, kCopy, 1, "alice");
  EXPECT_TRUE(
      serving_->run_until([&] { return c().in_flight.size() == Scheduler::kPeerWaitsMax; }));
  for (std::uint32_t i = 0; i < kMore; ++i) ask_over(0, kCopy, 1, "alice");
  for (std::uint32_t i = 0; i < kMore; ++i) EXPECT_EQ(letters(), "nn");
  EXPECT_EQ(c().in_flight.size(), Scheduler::kPeerWaitsMax);
  ask_over(0, kCopy, 1, "bob");
  serving_->turns(20);
  EXPECT_EQ(c().in_flight.size(), Scheduler::kPeerWaitsMax + 1);
  EXPECT_EQ(peer_waits(principal_on_behalf("bob")), 1u);
  EXPECT_EQ(peer_waits(principal_of_user(2)), 0u);
  expect_answers(Scheduler::kPeerWaitsMax + 1, "dd");
}

// --- hops ----------------------------------------------------------------------------------------

TEST_F(PeerPostsFixture, ACallSaysOverHowManyNodesItHasCome) {
  for (const std::uint8_t hops : {std::uint8_t{0}, std::uint8_t{1}}) {
    ask_over(hops, kCallOnce);
    serving_->turns(3);
    ASSERT_EQ(b().in_flight.size(), 1u);
    EXPECT_EQ(b().in_flight.front().hops, hops + 1);
    b().end();
    EXPECT_EQ(letters(), "d");
  }
}

// A READ waits for no place at the peer.
TEST_F(PeerPostsFixture, WhatHasComeFarEnoughCallsNobody) {
  ask_over(wire::kHopsMax, kCallOnce);
  EXPECT_EQ(letters(), "n");
  EXPECT_TRUE(b().in_flight.empty());
  ask_over(wire::kHopsMax, kCopy, 1);
  serving_->turns(3);
  EXPECT_EQ(b().in_flight.size(), 1u);
  expect_answers(1, "dd");
}

TEST_F(PeerPostsFixture, CallsOfMoreHopsDoNotWaitForOthers) {
  b().full_for_hops = 1;
  ask_over(0, kCallOnce);
  ask_over(0, kCallOnce);
  ask_over(1, kCallOnce);
  ask_over(0, kCopy, 1);
  serving_->turns(3);
  ASSERT_EQ(b().in_flight.size(), 2u);
  const auto hops = [&](std::size_t i) { return b().in_flight[i].hops; };
  EXPECT_EQ(hops(0) + hops(1), 2);  // of the call; the READ has none
}

TEST_F(PeerPostsFixture, OneSleepsNoLongerThanALinkLets) {
  EXPECT_EQ(serving_->scheduler().sleep_limit_ns(), ~std::uint64_t{0});
  c().sleep_ns = 5'000'000;
  EXPECT_EQ(serving_->scheduler().sleep_limit_ns(), 5'000'000u);
}

TEST(PeerPostsSeeds, EachEndIsWhatTheLinkSaidAndNoPostOvertakesAnother) {
  const std::uint64_t seed = base::seed_from_environment(73);
  for (std::uint64_t i = 0; i < 15; ++i) {
    ASSERT_EQ(PeerPostsWorld(seed + i).run(), "") << "seed " << seed + i;
  }
}

TEST_F(PeerPostsFixture, PeersAreFoundByName) {
  Request request;
  request.offload = &kPostingCalls[0];
  Call call(serving_->scheduler(), request);
  EXPECT_EQ(PeerPosts::of(call).peers(), 2u);
  EXPECT_EQ(PeerPosts::of(call).find("c"), 1u);
  EXPECT_EQ(PeerPosts::of(call).find("d"), std::nullopt);
}

}  // namespace
}  // namespace espalier::offload

// SPDX-License-Identifier: Apache-2.0
// What becomes of requests whose steps post to other nodes, over links that are told what to do.
#include "engine/peer_posts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <new>
#include <string>
#include <utility>
#include <vector>

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
/// address. The answer has a letter for each end.
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

/// Calls peer 0 with what it is called with, and answers what that answers; then once more.
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
     {.step = forward, .executor = &kPeerPosts}}};

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
      while (link->to_end.size() < link->in_flight.size()) link->end();
    }
  }
  ManualLink& b() { return *links.at(0); }
  ManualLink& c() { return *links.at(1); }
  void ask(std::uint32_t reads, const std::string& address = "0") {
    (*client_)->post(message_of(request_of(kCopy, 0, tag_++, reads), address));
    (*client_)->ring();
  }
  std::string letters() { return serving_->wait(*client_).payload; }

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

// In the order in which they came, and what goes to the other peer goes on.
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
  std::uint32_t answered = 0;
  while (answered < 2 * Scheduler::kInFlight) {
    for (ManualLink* const link : links) {
      while (link->to_end.size() < link->in_flight.size()) link->end();
    }
    (*client_)->flush();
    serving_->turn();
    while (const auto response = (*client_)->receive()) {
      ASSERT_EQ(response->payload, "dd");
      ++answered;
    }
  }
  EXPECT_TRUE(std::ranges::is_sorted(b().order));
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

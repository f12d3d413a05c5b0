// SPDX-License-Identifier: Apache-2.0
#include "channel/device/host_streams.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary_folder.hpp"
#include "channel/rings/testing/fake_node.hpp"
#include "engine/request.hpp"

namespace espalier::device {
namespace {

constexpr std::uint32_t kRings = 2;  // offered by the host: one stream, and one for the test

class HostStreamsTest : public ::testing::Test, protected PostedRequests {
 protected:
  HostStreamsTest() {
    auto connected = host_.connect({64, 1024, kRings});
    if (!connected) throw std::runtime_error(message(connected.error()));
    streams_.go_by(*connected);
    // The stream gets the first ring: the fake node has only that ring's other end.
    post(first_);
    turn();
    host_.answer(take_requests().front().tag);
    turn();
    ended_.clear();
    pieces_.clear();
    heard_before_ = streams_.heard();
    auto others = client::ThreadRings::open(std::move(*connected));
    if (!others) throw std::runtime_error(message(others.error()));
    others_ = std::move(*others);
  }
  void post(offload::Request& request) {
    wire::CallMessage message;
    message.offload = wire::OffloadId::table_query;
    streams_.post(request, message);
  }
  void answered(offload::Request& request, const HostAnswer& answer) override {
    ++pieces_[&request];
    if (answer.last) ended_.emplace_back(&request, static_cast<Code>(answer.header.code));
  }
  bool wants_more(offload::Request& request) override {
    wanted_.insert(&request);
    return !full_.contains(&request);
  }
  bool turn() { return streams_.turn(*this); }
  std::vector<wire::RequestHeader> take_requests() {
    std::vector<wire::RequestHeader> taken;
    wire::RequestHeader header{};
    while (host_.take_request(header)) taken.push_back(header);
    return taken;
  }

  base::TemporaryFolder folder_;
  client::FakeNode host_{(folder_ / "host").string()};
  std::unique_ptr<client::ThreadRings> others_;
  HostStreams streams_;
  std::uint64_t heard_before_ = 0;
  offload::Request first_;
  offload::Request second_;
  std::set<const offload::Request*> full_;    // those whose clients take nothing
  std::set<const offload::Request*> wanted_;  // those whose wants_more() was called
  std::map<const offload::Request*, int> pieces_;
  std::vector<std::pair<const offload::Request*, Code>> ended_;
};

TEST_F(HostStreamsTest, NoPieceIsTakenThatIsNotWanted) {
  post(first_);
  turn();
  const auto requests = take_requests();
  ASSERT_EQ(requests.size(), 1u);
  for (int i = 0; i < 3; ++i) host_.send_piece(requests.front().tag, "rows");
  turn();
  EXPECT_EQ(pieces_[&first_], 1) << "what it is worth, nobody knows yet";
  full_.insert(&first_);
  for (int i = 0; i < 10; ++i) turn();
  EXPECT_EQ(pieces_[&first_], 1);
  EXPECT_EQ(streams_.pending(), 1u);
  full_.clear();
  while (turn()) {
  }
  EXPECT_EQ(pieces_[&first_], 3);
  EXPECT_EQ(streams_.heard() - heard_before_, 3u);
  host_.answer(requests.front().tag);
  turn();
  EXPECT_EQ(ended_.size(), 1u);
  EXPECT_EQ(streams_.pending(), 0u);
}

TEST_F(HostStreamsTest, WhatFindsNoStreamWaitsForOne) {
  post(first_);
  post(second_);
  turn();
  auto requests = take_requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(streams_.pending(), 2u);
  host_.answer(requests.front().tag);
  turn();
  turn();
  requests = take_requests();
  ASSERT_EQ(requests.size(), 1u) << "the second";
  host_.answer(requests.front().tag);
  turn();
  ASSERT_EQ(ended_.size(), 2u);
  EXPECT_EQ(ended_.back().first, &second_);
  EXPECT_EQ(streams_.pending(), 0u);
}

TEST_F(HostStreamsTest, ACancelGoesToTheHost) {
  post(first_);
  turn();
  const auto requests = take_requests();
  post(second_);
  streams_.cancel(second_);  // while it waits
  streams_.cancel(first_);
  turn();
  const auto cancels = take_requests();
  ASSERT_EQ(cancels.size(), 1u);
  EXPECT_EQ(cancels.front().offload, static_cast<std::uint8_t>(wire::OffloadId::cancel));
  EXPECT_EQ(cancels.front().argument, requests.front().tag);
  host_.answer(requests.front().tag);
  std::vector<wire::RequestHeader> more;
  while (more.size() < 2) {
    turn();
    for (const auto& header : take_requests()) more.push_back(header);
  }
  EXPECT_EQ(more.front().offload, static_cast<std::uint8_t>(wire::OffloadId::table_query));
  EXPECT_EQ(more.back().offload, static_cast<std::uint8_t>(wire::OffloadId::cancel));
}

TEST_F(HostStreamsTest, TooManyThatWaitAreRefused) {
  std::deque<offload::Request> many(HostStreams::kWaitingMost + 3);
  for (offload::Request& request : many) post(request);
  EXPECT_EQ(streams_.pending(), many.size());
  turn();
  ASSERT_EQ(ended_.size(), 3u);
  for (const auto& [request, code] : ended_) EXPECT_EQ(code, Code::busy);
  EXPECT_EQ(streams_.pending(), HostStreams::kWaitingMost);
  streams_.fail(*this);
}

// The request ends with its answer; the cancel, which found no room, is sent once there is some.
TEST_F(HostStreamsTest, ACancelMayOutliveItsRequest) {
  post(first_);
  turn();
  auto requests = take_requests();
  ASSERT_EQ(requests.size(), 1u);
  const std::uint32_t tag = requests.front().tag;
  post(second_);
  wire::CallMessage outgoing;
  outgoing.offload = wire::OffloadId::noop;
  while (others_->begin_send(outgoing, 1)) {  // until the ring is full
  }
  streams_.cancel(first_);
  host_.answer(tag);
  turn();
  ASSERT_EQ(ended_.size(), 1u);
  wanted_.clear();
  for (int i = 0; i < 3; ++i) turn();
  EXPECT_FALSE(wanted_.contains(&first_)) << "it is gone";
  EXPECT_GE(streams_.pending(), 1u) << "the cancel waits";
  while (streams_.pending() != 0) {
    for (const auto& header : take_requests()) {
      if (header.offload == static_cast<std::uint8_t>(wire::OffloadId::table_query)) {
        host_.answer(header.tag);
      }
    }
    turn();
  }
  EXPECT_EQ(ended_.size(), 2u);
}

TEST_F(HostStreamsTest, WhatIsAwaitedFailsWithTheHost) {
  post(first_);
  turn();
  post(second_);
  full_.insert(&first_);
  streams_.fail(*this);
  ASSERT_EQ(ended_.size(), 2u);
  for (const auto& [request, code] : ended_) EXPECT_EQ(code, Code::connection_lost);
  EXPECT_EQ(streams_.pending(), 0u);
}

}  // namespace
}  // namespace espalier::device

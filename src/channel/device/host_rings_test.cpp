// SPDX-License-Identifier: Apache-2.0
#include "channel/device/host_rings.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary_folder.hpp"
#include "channel/rings/testing/fake_node.hpp"
#include "engine/request.hpp"
#include "wire/session_calls.hpp"

namespace espalier::device {
namespace {

class HostRingsFixture : public ::testing::Test, protected PostedRequests {
 protected:
  HostRingsFixture() {
    auto connected = host_.connect({64, 1024, 1});
    if (!connected) throw std::runtime_error(message(connected.error()));
    auto rings = client::ThreadRings::open(std::move(*connected));
    if (!rings) throw std::runtime_error(message(rings.error()));
    rings_ = std::make_unique<HostRings>(std::move(*rings));
  }
  void post(offload::Request& request, wire::OffloadId offload) {
    wire::CallMessage message;
    message.offload = offload;
    rings_->post(request, message);
  }
  bool turn() { return rings_->turn(*this); }
  void answered(offload::Request& request, const HostAnswer& answer) override {
    if (answer.last) answered_.push_back(&request);
  }
  bool wants_more(offload::Request&) override { return true; }
  std::vector<wire::RequestHeader> take_requests() {
    std::vector<wire::RequestHeader> taken;
    wire::RequestHeader header{};
    while (host_.take_request(header)) taken.push_back(header);
    return taken;
  }
  static bool is(const wire::RequestHeader& header, wire::OffloadId offload) {
    return header.offload == static_cast<std::uint8_t>(offload);
  }

  base::TemporaryFolder folder_;
  client::FakeNode host_{(folder_ / "host").string()};
  std::unique_ptr<HostRings> rings_;
  offload::Request scan_;
  offload::Request other_;
  std::vector<offload::Request*> answered_;
};

constexpr std::size_t kMoreThanTheRingHolds = 300;  // several times its slots

TEST_F(HostRingsFixture, WhatIsPostedIsAnsweredInOrder) {
  for (std::size_t i = 0; i < kMoreThanTheRingHolds; ++i) post(other_, wire::OffloadId::noop);
  while (answered_.size() < kMoreThanTheRingHolds) {
    turn();
    for (const auto& header : take_requests()) host_.answer(header.tag);
  }
  EXPECT_EQ(rings_->pending(), 0u);
}

// By the time the ring has room for a cancel, its tag may belong to another request.
TEST_F(HostRingsFixture, ACancelBehindAFullRingEndsNoOtherRequest) {
  post(scan_, wire::OffloadId::scan);
  turn();
  for (std::size_t i = 0; i < kMoreThanTheRingHolds; ++i) post(other_, wire::OffloadId::noop);
  turn();
  rings_->cancel(scan_);
  auto requests = take_requests();
  ASSERT_TRUE(is(requests.front(), wire::OffloadId::scan));
  const std::uint32_t tag = requests.front().tag;
  host_.answer(tag);  // its last answer, which crosses the cancel
  requests.erase(requests.begin());
  bool taken_anew = false;
  std::size_t cancels = 0;
  while (answered_.size() < 1 + kMoreThanTheRingHolds || cancels == 0) {
    for (const auto& header : requests) {
      if (is(header, wire::OffloadId::cancel)) {
        ++cancels;
        EXPECT_EQ(header.argument, tag);
        EXPECT_FALSE(taken_anew);
      } else {
        taken_anew = taken_anew || header.tag == tag;
        host_.answer(header.tag);
      }
    }
    turn();
    requests = take_requests();
  }
  EXPECT_EQ(cancels, 1u);
  EXPECT_EQ(answered_.front(), &scan_);
}

// A host whose client takes nothing begins later requests before it processes the cancel.
TEST_F(HostRingsFixture, ATagIsNoOthersUntilItsCancelIsAnswered) {
  post(scan_, wire::OffloadId::scan);
  turn();
  rings_->cancel(scan_);
  turn();
  const auto requests = take_requests();
  ASSERT_EQ(requests.size(), 2u);
  ASSERT_TRUE(is(requests.back(), wire::OffloadId::cancel));
  const std::uint32_t tag = requests.front().tag;
  ASSERT_EQ(requests.back().argument, tag);
  host_.answer(tag);
  turn();
  ASSERT_EQ(answered_, std::vector{&scan_});
  EXPECT_EQ(rings_->pending(), 0u) << "the answer to a cancel is worth no waiting";
  const auto tag_of_next = [&] {
    post(other_, wire::OffloadId::noop);
    turn();
    const auto taken = take_requests();
    EXPECT_EQ(taken.size(), 1u);
    host_.answer(taken.front().tag);
    turn();
    return taken.front().tag;
  };
  EXPECT_NE(tag_of_next(), tag);
  host_.answer(requests.back().tag);
  host_.answer(requests.back().tag);  // a duplicate answer frees nothing twice
  turn();
  std::set<std::uint32_t> tags{tag_of_next()};
  EXPECT_TRUE(tags.contains(tag)) << "what was freed last is taken first";
  post(other_, wire::OffloadId::noop);
  post(other_, wire::OffloadId::noop);
  post(other_, wire::OffloadId::noop);
  turn();
  tags.clear();
  for (const auto& header : take_requests()) tags.insert(header.tag);
  EXPECT_EQ(tags.size(), 3u);
}

// The cancel's answer arrives first if the request itself continues for a while.
TEST_F(HostRingsFixture, ACancelThatIsAnsweredFirstLeavesTheRequestItsTag) {
  post(scan_, wire::OffloadId::scan);
  turn();
  rings_->cancel(scan_);
  turn();
  const auto requests = take_requests();
  ASSERT_EQ(requests.size(), 2u);
  host_.answer(requests.back().tag);
  turn();
  EXPECT_TRUE(answered_.empty());
  EXPECT_EQ(rings_->pending(), 1u);
  post(other_, wire::OffloadId::noop);
  turn();
  const auto next = take_requests();
  ASSERT_EQ(next.size(), 1u);
  EXPECT_NE(next.front().tag, requests.front().tag);
  host_.answer(requests.front().tag);
  host_.answer(next.front().tag);
  turn();
  EXPECT_EQ(answered_, (std::vector{&scan_, &other_}));
}

TEST_F(HostRingsFixture, ARequestCancelledWhileItWaitsIsCancelledBehindItself) {
  for (std::size_t i = 0; i < kMoreThanTheRingHolds; ++i) post(other_, wire::OffloadId::noop);
  turn();
  post(scan_, wire::OffloadId::scan);
  rings_->cancel(scan_);
  std::vector<wire::RequestHeader> all;
  while (all.empty() || !is(all.back(), wire::OffloadId::cancel)) {
    turn();
    for (const auto& header : take_requests()) {
      all.push_back(header);
      if (is(header, wire::OffloadId::noop)) host_.answer(header.tag);
    }
  }
  ASSERT_GE(all.size(), 2u);
  EXPECT_TRUE(is(all[all.size() - 2], wire::OffloadId::scan));
  EXPECT_EQ(all.back().argument, all[all.size() - 2].tag);
}

TEST_F(HostRingsFixture, WhatIsAwaitedFailsWithTheHost) {
  post(scan_, wire::OffloadId::scan);
  turn();
  post(other_, wire::OffloadId::noop);
  rings_->fail(*this);
  EXPECT_EQ(answered_, (std::vector{&scan_, &other_}));
  EXPECT_EQ(rings_->pending(), 0u);
}

// Its payload need not stay valid until there is room for it.
TEST_F(HostRingsFixture, WhatTheDeviceAsksIsACallAndSoIsItsReply) {
  std::vector<Result<session_calls::Renewed>> replies;
  const auto renew = [&] {
    const std::string leaves(8, 'l');
    ask(*rings_, session_calls::RenewLease{7, {1, 2}, leaves},
        [&](const Result<session_calls::Renewed>& reply) { replies.push_back(reply); });
  };
  for (int i = 0; i < 3; ++i) renew();
  turn();
  const auto requests = take_requests();
  ASSERT_EQ(requests.size(), 3u);
  for (const wire::RequestHeader& header : requests) {
    EXPECT_TRUE(is(header, wire::OffloadId::lease_renew));
    EXPECT_EQ(header.map, 7u);
    EXPECT_EQ(header.bytes, wire::kRequestHeaderBytes + sizeof(wire::LeaseRenewal) + 8);
  }
  host_.answer(requests[0].tag);
  host_.answer(requests[1].tag, "more than such a reply has");
  turn();
  rings_->fail(*this);
  ASSERT_EQ(replies.size(), 3u);
  ASSERT_TRUE(replies[0]);
  EXPECT_EQ(replies[0]->epoch, 0u);
  EXPECT_EQ(replies[1].error().code, Code::corrupt);
  EXPECT_EQ(replies[2].error().code, Code::connection_lost);
}

}  // namespace
}  // namespace espalier::device

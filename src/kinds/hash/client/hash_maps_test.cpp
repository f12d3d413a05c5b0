// SPDX-License-Identifier: Apache-2.0
// A handle whose node goes, while another one comes: what it asks of which, and what it answers.
#include "kinds/hash/client/hash_maps.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "channel/channel.hpp"
#include "kinds/hash/calls.hpp"
#include "wire/message.hpp"
#include "wire/object.hpp"

namespace espalier::client {
namespace {

using channel::Answer;
using channel::NodeNumber;
using channel::Refusal;
using channel::Reply;

/// Nodes that come one after another, and answer what was laid down, in order.
class ReplyingNodes final : public channel::Channel {
 public:
  ReplyingNodes() : Channel(nullptr) {}

  std::expected<Answer, Refusal> ask(const wire::CallMessage& request,
                                     std::optional<NodeNumber> asked) override {
    if (asked && *asked != node) return std::unexpected(Refusal({Code::not_found, 0, 0}));
    calls.push_back(request.offload);
    if (replies.empty()) return std::unexpected(Refusal({Code::system, 0, 0}));
    Reply reply = std::move(replies.front());
    replies.pop_front();
    if (reply.header.code != 0) {
      return std::unexpected(Refusal({static_cast<Code>(reply.header.code), 0, 0}));
    }
    return Answer{std::move(reply), node};
  }
  std::expected<void, Refusal> make(const wire::CallMessage&, const wire::CallMessage&,
                                    const channel::TakeAnswer&) override {
    ADD_FAILURE();
    return std::unexpected(Refusal());
  }

  NodeNumber node = 1;
  std::deque<Reply> replies;
  std::vector<wire::OffloadId> calls;  // that reached a node
};

Reply opened_reply(std::uint32_t id, std::uint64_t durability = 0) {
  Reply reply;
  reply.header.version = id;
  reply.header.read_version = durability;
  reply.payload = base::bytes_of(hash::HashShape{4, 1, 0, 0, 0});
  return reply;
}
Reply item_reply(std::uint64_t version, std::string value) {
  Reply reply;
  reply.header.flags = wire::kFound;
  reply.header.version = version;
  reply.payload = std::move(value);
  return reply;
}
Reply written_reply(std::uint64_t version) {
  Reply reply;
  reply.header.flags = wire::kFound | wire::kApplied;
  reply.header.version = version;
  return reply;
}
Reply refused_reply(Code code) {
  Reply reply;
  reply.header.code = static_cast<std::uint16_t>(code);
  return reply;
}

class HashHandle : public testing::Test {
 protected:
  void SetUp() override {
    nodes_->replies = {opened_reply(5)};
    const auto opened = open_hash_map(nodes_, "map");
    ASSERT_TRUE(opened);
    map_ = *opened;
    nodes_->calls.clear();
  }

  const std::shared_ptr<ReplyingNodes> nodes_ = std::make_shared<ReplyingNodes>();
  std::shared_ptr<HashMapImpl> map_;
};

constexpr wire::OffloadId kOpenCall = hash_calls::Open::kCall.id;
constexpr wire::OffloadId kGetCall = hash_calls::Get::kCall.id;
constexpr wire::OffloadId kCompareCall = hash_calls::CompareAndSet::kCall.id;

// The map of the second one has begun anew, and its value happens to have the same version.
TEST_F(HashHandle, WhatModifyReadAtOneNodeItDoesNotWriteAtTheNext) {
  nodes_->replies = {item_reply(7, "first"), opened_reply(9), item_reply(7, "second"),
                     written_reply(8)};
  std::vector<std::string> seen;
  const auto written = map_->modify("key", [&](std::optional<std::string_view> now) {
    seen.emplace_back(now.value_or("none"));
    nodes_->node = 2;
    return std::optional<std::string>("next");
  });
  ASSERT_TRUE(written) << message(written.error());
  EXPECT_EQ(written->version, 8u);
  EXPECT_EQ(seen, (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(nodes_->calls,
            (std::vector<wire::OffloadId>{kGetCall, kOpenCall, kGetCall, kCompareCall}));
}

TEST_F(HashHandle, AConditionOnAVersionFailsAtAnotherNode) {
  nodes_->node = 2;
  nodes_->replies = {opened_reply(9), written_reply(8)};
  const auto by_version = map_->compare_and_set("key", {ConditionKind::version, 7, {}}, "next");
  ASSERT_FALSE(by_version);
  EXPECT_EQ(by_version.error().code, Code::condition_failed);
  EXPECT_EQ(nodes_->calls, std::vector<wire::OffloadId>{kOpenCall});
  // A value says all that there is to be known.
  nodes_->node = 3;
  nodes_->replies = {opened_reply(4), written_reply(8)};
  EXPECT_TRUE(map_->compare_and_set("key", {ConditionKind::value, 0, "first"}, "next"));
}

TEST_F(HashHandle, WhatKeepsItFromBeingOpenedIsHandedOn) {
  std::string value;
  for (const Code code : {Code::connection_lost, Code::out_of_memory, Code::not_permitted,
                          Code::busy, Code::too_many_participants}) {
    ++nodes_->node;
    nodes_->replies = {refused_reply(code)};
    const auto found = map_->get("key", value);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, code);
  }
  for (const Code code : {Code::not_found, Code::wrong_kind}) {
    nodes_->replies = {refused_reply(code)};
    const auto found = map_->get("key", value);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, Code::not_found);
  }
  nodes_->replies = {opened_reply(9), item_reply(1, "there")};
  EXPECT_TRUE(map_->get("key", value));
  EXPECT_EQ(value, "there");
}

// One that was made without a durability of its own is another.
TEST_F(HashHandle, AMapOfTheSameDurabilityIsOpenedAnew) {
  const std::uint64_t none = wire::number_of(Durability::none);
  nodes_->replies = {opened_reply(6, none)};
  const auto opened = open_hash_map(nodes_, "without");
  ASSERT_TRUE(opened);
  std::string value;
  ++nodes_->node;
  nodes_->replies = {opened_reply(9)};
  EXPECT_FALSE((*opened)->get("key", value));
  nodes_->replies = {opened_reply(9, none), item_reply(1, "there")};
  EXPECT_TRUE((*opened)->get("key", value));
  EXPECT_EQ(value, "there");
}

}  // namespace
}  // namespace espalier::client

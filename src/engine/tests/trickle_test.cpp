// SPDX-License-Identifier: Apache-2.0
// Clients that send one slot at a time, each with a doorbell. Their requests complete in the end,
// take memory in proportion to what they have sent, and delay no other client.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/tests/testing/scheduler_fixture.hpp"

namespace espalier::offload {
namespace {

using wire::OffloadId;

/// A message that is sent one slot at a time.
class Trickle {
 public:
  Trickle(SchedulerFixture::Client& client, std::string message)
      : client_(client), message_(std::move(message)) {}

  /// Returns whether there is more.
  bool step() {
    client_->write_slot(std::string_view(message_).substr(at_, wire::kRingSlotPayload));
    client_->ring();
    at_ += wire::kRingSlotPayload;
    return at_ < message_.size();
  }
  [[nodiscard]] std::size_t sent() const { return std::min(at_, message_.size()); }
  [[nodiscard]] SchedulerFixture::Client& client() { return client_; }

 private:
  SchedulerFixture::Client& client_;
  const std::string message_;
  std::size_t at_ = sizeof(std::uint32_t);  // the slot's own sequence word comes first
};

/// How many turns a get takes; too many: it was not answered.
int turns_of_a_get(SchedulerFixture& node, SchedulerFixture::Client& client, std::string_view key,
                   std::string_view value) {
  client->post(message_of(request_of(OffloadId::get, node.map()), key));
  client->ring();
  constexpr int kMost = 1000;
  for (int turns = 1; turns < kMost; ++turns) {
    node.turn();
    const auto response = client->receive();
    if (!response) continue;
    EXPECT_EQ(response->payload, value);
    return turns;
  }
  return kMost;
}

constexpr std::size_t kValueBytes = 100'000;
/// Bytes of the budget that a message takes as soon as it is longer than a slot or two.
constexpr std::uint64_t kFirstBytes = 4096;

std::string put_of(const SchedulerFixture& node, int number) {
  return message_of(request_of(OffloadId::put, node.map()), "slow " + std::to_string(number),
                    std::string(kValueBytes, static_cast<char>('a' + number)));
}

TEST(SchedulerTrickle, ClientsWhoseBytesTrickleAreServedAndDelayNobody) {
  constexpr int kTrickles = 5;
  constexpr int kTurnsMost = 8;
  SchedulerFixture node({}, std::uint64_t{4} << 20);
  auto& good = node.connect();
  ASSERT_TRUE(node.call(good, request_of(OffloadId::put, node.map()), "k", "v").applied());
  std::vector<Trickle> trickles;
  for (int i = 0; i < kTrickles; ++i) trickles.emplace_back(node.connect(), put_of(node, i));
  int slowest = 0;
  bool more = true;
  for (int round = 0; more; ++round) {
    std::size_t sent = 0;
    for (Trickle& trickle : trickles) {
      more = trickle.step();
      sent += trickle.sent();
    }
    slowest = std::max(slowest, turns_of_a_get(node, good, "k", "v"));
    // In proportion to what has arrived, not to the claimed length: buffers grow fourfold.
    ASSERT_LE(node.services().budget.used(), 4 * sent + kTrickles * kFirstBytes);
    // Another client's long message finds memory beside them.
    if (round % 500 == 499) {
      const std::string large(std::size_t{1} << 20, 'L');
      ASSERT_TRUE(node.call(good, request_of(OffloadId::put, node.map()), "L", large).applied());
    }
  }
  EXPECT_LE(slowest, kTurnsMost);
  for (Trickle& trickle : trickles) EXPECT_TRUE(node.wait(trickle.client()).applied());
  for (int i = 0; i < kTrickles; ++i) {
    const Response found =
        node.call(good, request_of(OffloadId::get, node.map()), "slow " + std::to_string(i));
    EXPECT_EQ(found.payload, std::string(kValueBytes, static_cast<char>('a' + i)));
  }
  EXPECT_EQ(node.services().budget.used(), 0u);
  EXPECT_EQ(node.broken(), 0);
}

// A client's share is reserved: a flood by another client does not take it.
TEST(SchedulerTrickle, AClientKeepsItsShareWhileAnotherFloods) {
  constexpr std::uint64_t kBudget = std::uint64_t{2} << 20;
  SchedulerFixture node({}, kBudget);
  auto& slow = node.connect();
  auto& flood = node.connect({256, 64, 1});
  Trickle trickle(slow, put_of(node, 0));
  const std::string large =
      message_of(request_of(OffloadId::put, node.map()), "flood", std::string(kBudget / 4, 'f'));
  std::uint64_t answered = 0;
  bool more = true;
  flood->post(large);
  while (more) {
    more = trickle.step();
    for (int i = 0; i < 4; ++i) {
      if (flood->flush()) flood->post(large);
      flood->ring();
      node.turn();
      while (const auto response = flood->receive()) {
        EXPECT_TRUE(response->answers());
        ++answered;
      }
    }
  }
  EXPECT_GT(answered, 1u) << "the flood goes on meanwhile";
  EXPECT_TRUE(node.wait(slow).applied());
  node.disconnect(flood);
  ASSERT_TRUE(node.run_until_idle());
  const Response found = node.call(slow, request_of(OffloadId::get, node.map()), "slow 0");
  EXPECT_EQ(found.payload.size(), kValueBytes);
  EXPECT_EQ(node.services().budget.used(), 0u);
}

}  // namespace
}  // namespace espalier::offload

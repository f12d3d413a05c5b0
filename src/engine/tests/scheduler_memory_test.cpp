// SPDX-License-Identifier: Apache-2.0
// Bounds of the memory that clients can make a scheduler take: unread answers, values larger than
// rings, and which client is evicted when memory runs short.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "engine/tests/testing/scheduler_fixture.hpp"

namespace espalier::offload {
namespace {

using wire::OffloadId;

void put(SchedulerFixture& node, SchedulerClient& client, std::string_view key,
         std::string_view value) {
  ASSERT_TRUE(node.call(client, request_of(OffloadId::put, node.map()), key, value).applied());
}

std::string key_of(int number) { return "k" + std::to_string(100'000 + number); }

/// The keys of the items in a payload, and the newest of their versions.
std::vector<std::string> keys_in(std::string_view payload, std::uint64_t& newest) {
  std::vector<std::string> keys;
  while (!payload.empty()) {
    wire::ItemHeader header;
    std::memcpy(&header, payload.data(), sizeof header);
    payload.remove_prefix(sizeof header);
    keys.emplace_back(payload.substr(0, header.key_bytes));
    payload.remove_prefix(header.key_bytes + header.value_bytes);
    newest = std::max<std::uint64_t>(newest, header.version);
  }
  return keys;
}

class SchedulerScans : public testing::TestWithParam<OffloadId> {};

// While scans wait for their client, their items are overwritten: each scan must still return the
// state at its version, complete, once and in order.
TEST_P(SchedulerScans, ThatWaitForMemoryTakeLittleAndLoseNothing) {
  constexpr int kItems = 2'000;
  constexpr std::uint32_t kScans = 100;
  FixtureOptions options;
  options.response_bytes_max = 64 << 10;
  SchedulerFixture node(options);
  SchedulerClient& good = node.connect();
  std::vector<std::string> expected;
  for (int i = 0; i < kItems; ++i) {
    put(node, good, key_of(i), std::string(100, 'v'));
    expected.push_back(key_of(i));
  }
  if (GetParam() == OffloadId::scan_reverse) std::reverse(expected.begin(), expected.end());
  SchedulerClient& slow = node.connect(kLongRequests);
  for (std::uint32_t i = 0; i < kScans; ++i) {
    slow->post(message_of(request_of(GetParam(), node.map(), i)));
  }
  slow->ring();
  std::vector<std::vector<std::string>> found(kScans);
  std::vector<std::uint64_t> newest(kScans);
  std::uint64_t most = 0;
  for (std::uint32_t answers = 0; answers < kScans;) {
    put(node, good, key_of(static_cast<int>(answers * 17 % kItems)), std::string(100, 'w'));
    node.turns(3);
    most = std::max(most, slow.connection->ring(0).backlog_bytes());
    const Response response = node.wait(slow);
    ASSERT_NE(response.header.kind, 0);
    const std::uint32_t scan = response.header.tag;
    ASSERT_LT(scan, kScans);
    for (std::string& key : keys_in(response.payload, newest[scan])) {
      found[scan].push_back(std::move(key));
    }
    if (!response.answers()) continue;
    ++answers;
    EXPECT_EQ(response.header.code, 0);
    EXPECT_EQ(found[scan], expected) << scan;
    EXPECT_LE(newest[scan], response.header.read_version) << scan;
  }
  // At most the reserve, and a step of items beyond the room.
  EXPECT_LE(most, options.response_bytes_max + (40 << 10));
  EXPECT_TRUE(node.run_until_idle());
  EXPECT_EQ(node.services().budget.used(), 0u);
}

INSTANTIATE_TEST_SUITE_P(All, SchedulerScans,
                         testing::Values(OffloadId::scan, OffloadId::scan_reverse),
                         [](const auto& tested) {
                           return tested.param == OffloadId::scan ? "Forward" : "Reverse";
                         });

TEST(SchedulerMemory, AScanThatWaitsCanBeCancelled) {
  FixtureOptions options;
  options.response_bytes_max = 64 << 10;
  SchedulerFixture node(options);
  SchedulerClient& client = node.connect(kLongRequests);
  for (int i = 0; i < 1'000; ++i) put(node, client, key_of(i), std::string(100, 'v'));
  for (std::uint32_t i = 0; i < 50; ++i) {
    client->post(message_of(request_of(OffloadId::scan, node.map(), i)));
  }
  client->ring();
  node.turns(100);
  for (std::uint32_t i = 0; i < 50; ++i) {
    client->post(message_of(request_of(OffloadId::cancel, 0, 100 + i, i)));
  }
  client->ring();
  for (int answers = 0; answers < 100;) {
    const Response response = node.wait(client);
    ASSERT_NE(response.header.kind, 0);
    EXPECT_EQ(response.header.code, 0);
    if (response.answers()) ++answers;
  }
  EXPECT_TRUE(node.run_until_idle());
}

class SchedulerBudgets : public testing::Test {
 protected:
  static constexpr std::uint64_t kBudget = 1 << 20;
  static constexpr std::size_t kValue = 100'000;

  static FixtureOptions options(std::uint64_t stuck_ns) {
    FixtureOptions made;
    made.sweep_ns = 0;
    made.stuck_ns = stuck_ns;
    return made;
  }
  /// Has so many clients request large values and read nothing.
  static void let_many_get_stuck(SchedulerFixture& node, int count) {
    SchedulerClient& writer = node.connect();
    put(node, writer, "big", std::string(kValue, 'b'));
    for (int c = 0; c < count; ++c) {
      SchedulerClient& stuck = node.connect(kLongRequests);
      for (int i = 0; i < 20; ++i) {
        stuck->post(message_of(request_of(OffloadId::get, node.map()), "big"));
      }
      stuck->ring();
    }
    node.turns(1000);
  }
};

TEST_F(SchedulerBudgets, HoldForTheAnswersOfAllClientsTogether) {
  SchedulerFixture node(options(~std::uint64_t{0}), kBudget);
  let_many_get_stuck(node, 40);
  EXPECT_LE(node.services().budget.used(), kBudget);
  EXPECT_GT(node.services().budget.used(), kBudget / 2);
  EXPECT_GT(node.services().waiting_for_memory.load(), 0u);
  EXPECT_EQ(node.broken(), 0);
  // Short answers need none of it.
  SchedulerClient& good = node.connect();
  put(node, good, "a", "value");
  EXPECT_EQ(node.call(good, request_of(OffloadId::get, node.map()), "a").payload, "value");
}

// All clients are stuck at the same time here, and the largest consumer is evicted first; a client
// that reads holds little.
TEST_F(SchedulerBudgets, AreGivenToThoseWhoReadFromThoseWhoDoNot) {
  for (int round = 0; round < 5; ++round) {
    SchedulerFixture node(options(0), kBudget);
    let_many_get_stuck(node, 10);
    SchedulerClient& good = node.connect();
    const Response response = node.call(good, request_of(OffloadId::get, node.map()), "big");
    ASSERT_EQ(response.payload.size(), kValue);
    EXPECT_GT(node.client_table().counts().stuck_ended.load(), 0u);
    EXPECT_FALSE(good.ended);
  }
}

TEST_F(SchedulerBudgets, AMessageWithoutMemoryIsRefusedAndTheNextIsTaken) {
  SchedulerFixture node({}, 1000);
  SchedulerClient& client = node.connect();
  const Response refused =
      node.call(client, request_of(OffloadId::put, node.map(), 9), "a", std::string(5000, 'v'));
  EXPECT_EQ(refused.code(), Code::out_of_memory);
  EXPECT_EQ(refused.header.tag, 9u);
  EXPECT_EQ(node.call(client, request_of(OffloadId::get, node.map()), "a").header.code, 0);
  EXPECT_EQ(node.services().budget.used(), 0u);
}

TEST_F(SchedulerBudgets, ARefusedMessageForARingThatIsNotBreaksOnlyItsConnection) {
  SchedulerFixture node({}, 1000);
  SchedulerClient& liar = node.connect();
  wire::RequestHeader header = request_of(OffloadId::put, node.map());
  header.ring = 15;
  liar->post(message_of(header, "a", std::string(3000, 'v')));
  liar->ring();
  node.turns(10);
  EXPECT_TRUE(liar.ended);
  EXPECT_EQ(node.broken(), 1);
  SchedulerClient& other = node.connect();
  EXPECT_TRUE(node.call(other, request_of(OffloadId::noop)).answers());
}

TEST_F(SchedulerBudgets, OfAConnectionThatEndsComeBack) {
  SchedulerFixture node(options(~std::uint64_t{0}), kBudget);
  put(node, node.connect(), "big", std::string(kValue, 'b'));
  for (int round = 0; round < 20; ++round) {
    SchedulerClient& stuck = node.connect(kLongRequests);
    for (int i = 0; i < 20; ++i) {
      stuck->post(message_of(request_of(OffloadId::get, node.map()), "big"));
    }
    stuck->ring();
    node.turns(100);
    EXPECT_GT(node.services().budget.used(), kValue);
    node.disconnect(stuck);
    ASSERT_TRUE(node.run_until_idle());
    node.turn();
    EXPECT_EQ(node.services().budget.used(), 0u);
    EXPECT_EQ(node.services().waiting_for_memory.load(), 0u);
  }
}

// A request that waits for memory may stand before requests that hold memory, and must not keep
// them from releasing it.
TEST_F(SchedulerBudgets, RequestsThatWaitForMemoryLetOthersPass) {
  SchedulerFixture node(options(~std::uint64_t{0}), kBudget);
  put(node, node.connect(), "big", std::string(4 * kValue, 'b'));
  SchedulerClient& client = node.connect({8192, 64, 1});
  for (std::uint32_t round = 0; round < 50; ++round) {
    for (std::uint32_t i = 0; i < 3; ++i) {
      client->post(message_of(request_of(OffloadId::get, node.map(), i), "big"));
    }
    for (std::uint32_t i = 3; i < 7; ++i) {
      client->post(message_of(request_of(OffloadId::put, node.map(), i), "other",
                              std::string(kValue / 2, 'o')));
    }
    for (int answers = 0; answers < 7;) {
      client->flush();
      client->ring();
      const Response response = node.wait(client);
      ASSERT_NE(response.header.kind, 0) << round;
      ++answers;
    }
  }
  EXPECT_TRUE(node.run_until_idle());
  EXPECT_EQ(node.services().waiting_for_memory.load(), 0u);
}

}  // namespace
}  // namespace espalier::offload

// SPDX-License-Identifier: Apache-2.0
// What one client's long walks and jobs leave to others, counted in turns of the scheduler.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "engine/scheduler.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"

namespace espalier::offload {
namespace {

using wire::OffloadId;

constexpr wire::ConnectionLayout kManyRequests{512, 512, 1};

class SchedulerSharesTest : public testing::Test {
 protected:
  // Some counts take several walks.
  void SetUp() override {
    auto& writer = node_.connect(kSmallRings, 99);
    for (int i = 0; i < 20'000; ++i) {
      ASSERT_TRUE(node_.call(writer, request_of(OffloadId::put, node_.map()),
                             "key " + std::to_string(100'000 + i), "value")
                      .applied());
    }
    node_.disconnect(writer);
  }
  void post(SchedulerFixture::Client& client, OffloadId offload, std::string_view key = {},
            std::uint8_t ring = 0) {
    wire::RequestHeader header = request_of(offload, node_.map(), ++tag_);
    header.ring |= ring;
    client->post(message_of(header, key));
    client->flush();
    client->ring();
  }
  /// Keeps so many counts of a client in flight.
  void count_on(SchedulerFixture::Client& client, std::size_t& in_flight, std::size_t wanted) {
    while (client->receive(0)) --in_flight;
    for (; in_flight < wanted; ++in_flight) post(client, OffloadId::count);
  }
  /// How many turns a request of a client takes; `meanwhile` in each of them.
  template <class Meanwhile>
  int turns_of(SchedulerFixture::Client& client, OffloadId offload, std::string_view key,
               const Meanwhile& meanwhile) {
    post(client, offload, key);
    for (int turns = 1; turns < 100'000; ++turns) {
      meanwhile();
      node_.turn();
      if (client->receive(0)) return turns;
    }
    return 100'000;
  }

  SchedulerFixture node_;
  std::uint32_t tag_ = 0;
};

// It took as long as some hundreds of counts when all that came waited behind them.
TEST_F(SchedulerSharesTest, GetsDoNotWaitForCountsOfOthers) {
  auto& other = node_.connect(kSmallRings, 2);
  const auto alone =
      turns_of(other, OffloadId::get, "key 100007", [] {});
  auto& greedy = node_.connect(kManyRequests, 1);
  std::size_t in_flight = 0;
  const auto meanwhile = [&] { count_on(greedy, in_flight, 200); };
  meanwhile();
  node_.turns(50);
  for (int i = 0; i < 20; ++i) {
    EXPECT_LE(turns_of(other, OffloadId::get, "key 100007", meanwhile), alone + 3);
  }
}

// A whole count is some walks; all of them have lanes as they come.
TEST_F(SchedulerSharesTest, CountsOfAnotherHaveLanesBesideHundreds) {
  auto& other = node_.connect(kSmallRings, 2);
  const int alone = turns_of(other, OffloadId::count, {}, [] {});
  auto& greedy = node_.connect(kManyRequests, 1);
  std::size_t in_flight = 0;
  const auto meanwhile = [&] { count_on(greedy, in_flight, 200); };
  meanwhile();
  node_.turns(50);
  for (int i = 0; i < 5; ++i) {
    // Walks end by turns, so a lane is free soon. First come, first served, it is 200 counts.
    EXPECT_LE(turns_of(other, OffloadId::count, {}, meanwhile), 3 * alone);
  }
  EXPECT_GT(node_.scheduler().counts().requests[static_cast<std::size_t>(OffloadId::count)].load(),
            200u);
}

// Whoever fills its share of a scheduler with walks that wait keeps nobody out.
TEST_F(SchedulerSharesTest, WalksThatWaitForLanesLeavePlacesToOthers) {
  std::vector<SchedulerFixture::Client*> greedy;
  for (std::uint32_t i = 0; i < 40; ++i) greedy.push_back(&node_.connect(kManyRequests, 1));
  auto& other = node_.connect(kSmallRings, 2);
  for (SchedulerFixture::Client* const client : greedy) {
    for (int i = 0; i < 250; ++i) post(*client, OffloadId::count);
  }
  const auto meanwhile = [&] {
    for (SchedulerFixture::Client* const client : greedy) {
      while ((*client)->receive(0)) post(*client, OffloadId::count);
    }
  };
  for (int i = 0; i < 50; ++i) {
    meanwhile();
    node_.turn();
  }
  // Several turns pass until its doorbell is heard among so many.
  for (int i = 0; i < 5; ++i) {
    EXPECT_LE(turns_of(other, OffloadId::get, "key 100007", meanwhile), 20);
  }
  for (SchedulerFixture::Client* const client : greedy) node_.disconnect(*client);
  EXPECT_TRUE(node_.run_until_idle());
}

// Short walks that need a lane, of snapshots here, keep those back that need none as little.
TEST_F(SchedulerSharesTest, GetsOfTheNewestStateDoNotWaitForThoseOfSnapshots) {
  auto& greedy = node_.connect(kManyRequests, 1);
  const Response opened = node_.call(greedy, request_of(OffloadId::snapshot_open, node_.map()));
  ASSERT_EQ(opened.code(), Code::invalid);
  auto& other = node_.connect(kSmallRings, 2);
  const int alone = turns_of(other, OffloadId::get, "key 100007", [] {});
  std::size_t in_flight = 0;
  const auto meanwhile = [&] {
    while (greedy->receive(0)) --in_flight;
    for (; in_flight < 200; ++in_flight) {
      wire::RequestHeader header = request_of(OffloadId::get, node_.map(), ++tag_);
      header.ring |= wire::kAtSnapshot;
      const std::uint64_t snapshot = opened.header.version;
      greedy->post(message_of(header, "key 100009", base::bytes_of(snapshot)));
      greedy->flush();
      greedy->ring();
    }
  };
  meanwhile();
  node_.turns(20);
  for (int i = 0; i < 20; ++i) {
    EXPECT_LE(turns_of(other, OffloadId::get, "key 100007", meanwhile), alone + 3);
  }
}

TEST_F(SchedulerSharesTest, JobsOfHelpersLeavePlacesToOthers) {
  // The one helper stays where it is until the end.
  std::atomic<bool> go_on{false};
  node_.services().helpers.run([&] { go_on.wait(false); });
  std::vector<SchedulerFixture::Client*> greedy;
  for (std::uint32_t i = 0; i < 40; ++i) greedy.push_back(&node_.connect(kManyRequests, 1));
  for (SchedulerFixture::Client* const client : greedy) {
    for (int i = 0; i < 40; ++i) post(*client, OffloadId::object_list);
  }
  auto& other = node_.connect(kSmallRings, 2);
  node_.turns(100);
  EXPECT_LE(turns_of(other, OffloadId::get, "key 100007", [] {}), 20);
  go_on.store(true);
  go_on.notify_all();
  for (SchedulerFixture::Client* const client : greedy) node_.disconnect(*client);
  EXPECT_TRUE(node_.run_until_idle());
}

}  // namespace
}  // namespace espalier::offload

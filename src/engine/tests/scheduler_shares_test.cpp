// SPDX-License-Identifier: Apache-2.0
// Fairness: what one client's long walks and jobs leave to others, counted in turns of the
// scheduler.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "engine/principal.hpp"
#include "engine/principal_accounts.hpp"
#include "engine/scheduler.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/map/offload/lane_queue.hpp"

namespace espalier::offload {
namespace {

using wire::OffloadId;

constexpr wire::ConnectionLayout kManyRequests{512, 512, 1};

class SchedulerSharesTest : public testing::Test {
 protected:
  // So many keys that a count takes several walks.
  void SetUp() override {
    auto& writer = node_.connect(kSmallRings, 99);
    for (int i = 0; i < 20'000; ++i) {
      ASSERT_TRUE(node_
                      .call(writer, request_of(OffloadId::put, node_.map()),
                            "key " + std::to_string(100'000 + i), "value")
                      .applied());
    }
    node_.disconnect(writer);
  }
  /// `name`: the principal on whose behalf a device posts; empty: the device itself.
  void post(SchedulerFixture::Client& client, OffloadId offload, std::string_view key = {},
            std::uint8_t ring = 0, std::string_view name = {}) {
    wire::RequestHeader header = request_of(offload, node_.map(), ++tag_);
    header.ring |= ring;
    if (!name.empty()) header.ring |= wire::kOnBehalf;
    const std::string principal =
        name.empty() ? std::string() : bytes_of(PrincipalView{Right::read, name, ""});
    client->post(message_of(header, key, principal));
    client->flush();
    client->ring();
  }
  /// Keeps so many counts of a client in flight.
  void count_on(SchedulerFixture::Client& client, std::size_t& in_flight, std::size_t wanted) {
    while (client->receive(0)) --in_flight;
    for (; in_flight < wanted; ++in_flight) post(client, OffloadId::count);
  }
  /// How many turns a client's request takes; calls `meanwhile` in each of them.
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

  [[nodiscard]] PrincipalAccount& account(const std::string& name) {
    return *node_.services().principals.of(name);
  }

  SchedulerFixture node_;
  std::uint32_t tag_ = 0;
};

// Took as long as some hundred counts when all requests waited behind them.
TEST_F(SchedulerSharesTest, GetsDoNotWaitForCountsOfOthers) {
  auto& other = node_.connect(kSmallRings, 2);
  const auto alone = turns_of(other, OffloadId::get, "key 100007", [] {});
  auto& greedy = node_.connect(kManyRequests, 1);
  std::size_t in_flight = 0;
  const auto meanwhile = [&] { count_on(greedy, in_flight, 200); };
  meanwhile();
  node_.turns(50);
  for (int i = 0; i < 20; ++i) {
    EXPECT_LE(turns_of(other, OffloadId::get, "key 100007", meanwhile), alone + 3);
  }
}

// A count is several walks; all of them get lanes as they come.
TEST_F(SchedulerSharesTest, CountsOfAnotherHaveLanesBesideHundreds) {
  auto& other = node_.connect(kSmallRings, 2);
  const int alone = turns_of(other, OffloadId::count, {}, [] {});
  auto& greedy = node_.connect(kManyRequests, 1);
  std::size_t in_flight = 0;
  const auto meanwhile = [&] { count_on(greedy, in_flight, 200); };
  meanwhile();
  node_.turns(50);
  for (int i = 0; i < 5; ++i) {
    // Walks end in turn, so a lane is free soon. In order of arrival this would take 200 counts.
    EXPECT_LE(turns_of(other, OffloadId::count, {}, meanwhile), 3 * alone);
  }
  EXPECT_GT(node_.scheduler().counts().requests[static_cast<std::size_t>(OffloadId::count)].load(),
            200u);
}

// Over one connection of a device: its clients have accounts of their own, and it shares none.
TEST_F(SchedulerSharesTest, CountsOfADevicesClientLeaveLanesToItsOthers) {
  auto& device = node_.connect({512, 512, 2}, 1);
  const auto count_for_bob = [&](const auto& meanwhile) {
    post(device, OffloadId::count, {}, 1, "bob");
    for (int turns = 1; turns < 100'000; ++turns) {
      meanwhile();
      node_.turn();
      if (device->receive(1)) return turns;
    }
    return 100'000;
  };
  const int alone = count_for_bob([] {});
  std::size_t in_flight = 0;
  const auto meanwhile = [&] {
    while (device->receive(0)) --in_flight;
    for (; in_flight < 200; ++in_flight) post(device, OffloadId::count, {}, 0, "alice");
  };
  meanwhile();
  node_.turns(50);
  for (int i = 0; i < 5; ++i) EXPECT_LE(count_for_bob(meanwhile), 3 * alone);
  EXPECT_GT(account("secret alice").parts.of<LaneShare>().served.load(), 0u);
  EXPECT_GT(account("secret bob").parts.of<LaneShare>().served.load(), 0u);
  EXPECT_EQ(device.connection->account->parts.find<LaneShare>(), nullptr);
}

// A client that fills its share of a scheduler with waiting walks blocks no other.
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
  // With so many doorbells it takes several turns until this one is seen.
  for (int i = 0; i < 5; ++i) {
    EXPECT_LE(turns_of(other, OffloadId::get, "key 100007", meanwhile), 20);
  }
  for (SchedulerFixture::Client* const client : greedy) node_.disconnect(*client);
  EXPECT_TRUE(node_.run_until_idle());
}

// Nor do short walks that need a lane, here of snapshots, delay gets that need none.
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
  // The only helper is blocked until the end.
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

TEST_F(SchedulerSharesTest, JobsOfADevicesClientsAreTheirs) {
  constexpr std::uint32_t kJobs = 10;
  std::atomic<bool> go_on{false};
  node_.services().helpers.run([&] { go_on.wait(false); });
  auto& device = node_.connect(kManyRequests, 1);
  for (std::uint32_t i = 0; i < kJobs; ++i) post(device, OffloadId::object_list, {}, 0, "alice");
  post(device, OffloadId::object_list, {}, 0, "bob");
  node_.turns(100);
  EXPECT_EQ(account("secret alice").helpers.jobs, kJobs);
  EXPECT_EQ(account("secret bob").helpers.jobs, 1u);
  EXPECT_EQ(device.connection->account->helpers.jobs, 0u);
  go_on.store(true);
  go_on.notify_all();
  node_.disconnect(device);
  EXPECT_TRUE(node_.run_until_idle());
}

}  // namespace
}  // namespace espalier::offload

// SPDX-License-Identifier: Apache-2.0
// The scheduler and its clients: turns, doorbells, full rings, ended connections.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "engine/serving_gate.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"

namespace espalier::offload {
namespace {

using wire::OffloadId;

constexpr wire::ConnectionLayout kTwoRings{64, 64, 2};

FixtureOptions no_sweeps() {
  FixtureOptions options;
  options.sweep_ns = ~std::uint64_t{0} >> 2;
  return options;
}

void fill(SchedulerFixture& node, SchedulerClient& client, int items, std::size_t value_bytes) {
  for (int i = 0; i < items; ++i) {
    const std::string key = "k" + std::to_string(100'000 + i);
    const Response put = node.call(client, request_of(OffloadId::put, node.map()), key,
                                   std::string(value_bytes, 'v'));
    ASSERT_TRUE(put.applied());
  }
}

std::uint64_t held_snapshots(SchedulerFixture& node) {
  return node.core().store.reclaimer.waiting(node.core(), false).snapshots;
}

/// Checks that another client is served normally.
void expect_good_service(SchedulerFixture& node, SchedulerClient& client) {
  const Response put = node.call(client, request_of(OffloadId::put, node.map()), "good", "value");
  EXPECT_TRUE(put.applied());
  EXPECT_EQ(node.call(client, request_of(OffloadId::get, node.map()), "good").payload, "value");
}

// --- fairness ------------------------------------------------------------------------------------

TEST(SchedulerFairness, ARingThatFloodsDoesNotKeepOthersWaiting) {
  SchedulerFixture node;
  SchedulerClient& flood = node.connect({4096, 64, 1});
  SchedulerClient* others[] = {&node.connect(), &node.connect()};
  std::uint64_t flooded = 0;
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 64; ++i) flood->post(message_of(request_of(OffloadId::noop)));
    flood->ring();
    for (SchedulerClient* other : others) {
      (*other)->post(message_of(request_of(OffloadId::noop)));
      (*other)->ring();
    }
    node.turn();
    for (SchedulerClient* other : others) EXPECT_TRUE((*other)->receive()) << round;
    while (flood->receive()) ++flooded;
  }
  EXPECT_GE(flooded, 200 * 16u);
}

TEST(SchedulerFairness, WhatRunsLongGivesWay) {
  SchedulerFixture node;
  SchedulerClient& client = node.connect();
  fill(node, client, 20'000, 50);
  SchedulerClient& scanner = node.connect({64, 16384, 1});
  scanner->post(message_of(request_of(OffloadId::scan, node.map())));
  scanner->ring();
  int answered = 0;
  for (bool done = false; !done;) {
    if (node.call(client, request_of(OffloadId::get, node.map()), "k100000").found()) ++answered;
    while (auto response = scanner->receive()) done = done || response->answers();
  }
  EXPECT_GE(answered, 5);
}

// --- a closed gate -------------------------------------------------------------------------------

TEST(SchedulerGate, NeitherAnswersNorPartsOfThemPassAClosedOne) {
  FixtureOptions options;
  options.make_part = [](TypedSlots<NodePart>& parts) {
    static_cast<void>(parts.make<ServingGate>());
  };
  SchedulerFixture node(options);
  auto* const gate = node.services().parts.find<ServingGate>();
  ASSERT_NE(gate, nullptr);
  gate->until_ns = ~std::uint64_t{0};
  SchedulerClient& filler = node.connect();
  fill(node, filler, 2'000, 100);
  SchedulerClient& scanner = node.connect({64, 16384, 1});
  SchedulerClient& reader = node.connect();
  gate->until_ns = 0;
  scanner->post(message_of(request_of(OffloadId::scan, node.map())));
  reader->post(message_of(request_of(OffloadId::get, node.map()), "k100000"));
  for (SchedulerClient* const client : {&scanner, &reader}) (*client)->ring();
  EXPECT_TRUE(node.run_until([&] { return scanner.ended && reader.ended; }));
  EXPECT_FALSE(scanner->receive());
  EXPECT_FALSE(reader->receive());
  EXPECT_EQ(node.broken(), 2);
}

// --- full rings ----------------------------------------------------------------------------------

TEST(SchedulerBacklog, ARingThatIsNotReadStopsItsClientAndNobodyElse) {
  SchedulerFixture node;
  SchedulerClient& good = node.connect();
  fill(node, good, 2'000, 100);
  SchedulerClient& stuck = node.connect(kLongRequests);
  for (int i = 0; i < 300; ++i) {
    stuck->post(message_of(request_of(OffloadId::scan, node.map(), 1000 + i)));
  }
  stuck->ring();
  for (int i = 0; i < 100; ++i) expect_good_service(node, good);
  EXPECT_TRUE(node.client_table().waits_for_clients());
  EXPECT_GT(stuck.connection->in_flight, 0u);
  // All of it arrives once the client reads.
  std::uint64_t answers = 0;
  while (answers < 300) {
    const Response response = node.wait(stuck);
    ASSERT_NE(response.header.kind, 0);
    if (!response.answers()) continue;
    ++answers;
    EXPECT_GE(response.header.version, 2'000u);
  }
  EXPECT_TRUE(node.run_until_idle());
  EXPECT_FALSE(node.client_table().waits_for_clients());
}

TEST(SchedulerBacklog, AClientThatDoesNotReadIsNoNewsForAWorkerThatWantsToSleep) {
  SchedulerFixture node;
  SchedulerClient& good = node.connect();
  fill(node, good, 2'000, 100);
  SchedulerClient& stuck = node.connect(kLongRequests);
  // More than may be buffered for it: then its requests stay in the ring.
  for (std::uint32_t i = 0; i < Scheduler::kStalledMax + 2000; ++i) {
    stuck->post(message_of(request_of(OffloadId::scan, node.map())));
    stuck->ring();
    node.turn();
  }
  node.turns(2000);
  EXPECT_EQ(stuck.connection->stalled_count, Scheduler::kStalledMax);
  ASSERT_TRUE(stuck.connection->requests.ready());
  EXPECT_FALSE(node.turn());
  EXPECT_TRUE(node.client_table().waits_for_clients());
  EXPECT_FALSE(node.scheduler().has_news());
  good->post(message_of(request_of(OffloadId::noop)));
  good->ring();
  EXPECT_TRUE(node.scheduler().has_news());
}

TEST(SchedulerBacklog, ValuesThatWereReadWhenThereWasNoRoomComeAllTheSame) {
  FixtureOptions options;
  options.response_bytes_max = 10'000;
  SchedulerFixture node(options);
  SchedulerClient& client = node.connect(kLongRequests);
  const std::string value(9'000, 'v');
  ASSERT_TRUE(node.call(client, request_of(OffloadId::put, node.map()), "big", value).applied());
  for (int i = 0; i < 100; ++i) {
    client->post(
        message_of(request_of(i % 2 == 0 ? OffloadId::get : OffloadId::floor, node.map()), "big"));
  }
  client->ring();
  node.turns(100);
  EXPECT_LE(client.connection->ring(0).backlog_bytes(), 20'000u);
  for (int i = 0; i < 100; ++i) {
    const Response response = node.wait(client);
    ASSERT_TRUE(response.found());
    ASSERT_TRUE(std::string_view(response.payload).ends_with(value));
  }
}

TEST(SchedulerBacklog, RequestsOfOtherRingsOfTheSameClientGoOn) {
  SchedulerFixture node;
  SchedulerClient& client = node.connect({1024, 64, 2});
  fill(node, client, 2'000, 100);
  for (int i = 0; i < 300; ++i) client->post(message_of(request_of(OffloadId::scan, node.map())));
  client->ring();
  node.turns(1000);
  wire::RequestHeader get = request_of(OffloadId::get, node.map(), 7);
  get.ring = 1;
  client->post(message_of(get, "k100001"));
  client->ring();
  const Response response = node.wait(client, 1);
  EXPECT_TRUE(response.found());
  EXPECT_EQ(response.header.tag, 7u);
}

TEST(SchedulerBacklog, ManyClientsThatDoNotReadLeaveRoomForOneThatDoes) {
  SchedulerFixture node;
  SchedulerClient& good = node.connect();
  fill(node, good, 2'000, 100);
  for (int c = 0; c < 40; ++c) {
    SchedulerClient& stuck = node.connect(kLongRequests);
    for (int i = 0; i < 300; ++i) stuck->post(message_of(request_of(OffloadId::scan, node.map())));
    stuck->ring();
  }
  node.turns(1000);
  expect_good_service(node, good);
}

// --- cancel --------------------------------------------------------------------------------------

TEST(SchedulerCancel, EndsALongScan) {
  SchedulerFixture node;
  SchedulerClient& client = node.connect({64, 1024, 1});
  fill(node, client, 20'000, 50);
  client->post(message_of(request_of(OffloadId::scan, node.map(), 1)));
  client->ring();
  EXPECT_FALSE(node.wait(client).answers());
  client->post(message_of(request_of(OffloadId::cancel, 0, 2, 1)));
  client->ring();
  bool ended = false;
  bool answered = false;
  while (!ended || !answered) {
    const Response response = node.wait(client);
    ASSERT_NE(response.header.kind, 0);
    if (response.header.tag == 2) answered = true;
    if (response.header.tag != 1 || !response.answers()) continue;
    ended = true;
    EXPECT_LT(response.header.version, 20'000u);
    EXPECT_EQ(response.header.code, 0);
  }
  EXPECT_TRUE(node.run_until_idle());
  EXPECT_EQ(held_snapshots(node), 0u);
}

TEST(SchedulerCancel, IsOfTheSameRingAndClient) {
  SchedulerFixture node;
  SchedulerClient& client = node.connect(kTwoRings);
  fill(node, client, 5'000, 50);
  SchedulerClient& other = node.connect();
  client->post(message_of(request_of(OffloadId::scan, node.map(), 1)));
  client->ring();
  node.turn();
  EXPECT_TRUE(node.call(other, request_of(OffloadId::cancel, 0, 2, 1)).answers());
  std::uint64_t items = 0;
  for (Response response; !response.answers(); items = response.header.version) {
    response = node.wait(client);
    ASSERT_NE(response.header.kind, 0);
  }
  EXPECT_EQ(items, 5'000u);
}

// --- ends ----------------------------------------------------------------------------------------

TEST(SchedulerEnd, OfAConnectionWithRequestsInFlight) {
  SchedulerFixture node;
  SchedulerClient& good = node.connect();
  fill(node, good, 5'000, 100);
  for (int turns = 0; turns < 60; ++turns) {
    SchedulerClient& leaver = node.connect({1024, 64, 1});
    for (int i = 0; i < 20; ++i) {
      for (const OffloadId offload : {OffloadId::scan, OffloadId::count, OffloadId::put,
                                      OffloadId::get, OffloadId::snapshot_open}) {
        leaver->post(message_of(request_of(offload, node.map()), "k100000"));
      }
      leaver->post(message_of(request_of(OffloadId::add, node.map()), "n", bytes_of(5) + "4444"));
    }
    leaver->ring();
    node.turns(turns);
    node.disconnect(leaver);
    expect_good_service(node, good);
    ASSERT_TRUE(node.run_until_idle());
    EXPECT_TRUE(leaver.ended) << turns;
  }
  EXPECT_EQ(node.client_table().counts().connections, 1u);
  EXPECT_EQ(held_snapshots(node), 0u);
  EXPECT_EQ(node.services().budget.used(), 0u);
  EXPECT_EQ(node.audit(), std::vector<std::string>{});
}

TEST(SchedulerEnd, OfAllIsOrderlyWhenNoMoreIsTaken) {
  SchedulerFixture node;
  SchedulerClient& client = node.connect();
  for (std::uint32_t i = 0; i < 8; ++i) client->post(message_of(request_of(OffloadId::noop)));
  client->ring();
  client->post(message_of(request_of(OffloadId::get, node.map()), "k"));
  client->ring();
  node.scheduler().turn();  // takes them; the get is in flight now
  EXPECT_FALSE(node.scheduler().idle());
  node.scheduler().take_no_more();
  client->post(message_of(request_of(OffloadId::noop)));
  client->ring();
  ASSERT_TRUE(node.run_until_idle());
  std::uint32_t answers = 0;
  while (client->receive()) ++answers;
  EXPECT_EQ(answers, 9u);
}

TEST(SchedulerEnd, OfAConnectionWhoseWorkWasHandedOver) {
  SchedulerFixture node;
  SchedulerClient& good = node.connect();
  wire::MapShape shape{};
  shape.node_bytes = 1024;
  shape.versions = 1;
  for (int round = 0; round < 20; ++round) {
    SchedulerClient& leaver = node.connect();
    const std::string name = "map" + std::to_string(round);
    leaver->post(message_of(request_of(OffloadId::map_create), name, bytes_of(shape)));
    leaver->post(message_of(request_of(OffloadId::object_drop), name));
    leaver->ring();
    node.scheduler().turn();
    node.disconnect(leaver);
    expect_good_service(node, good);
    ASSERT_TRUE(node.run_until_idle());
    EXPECT_TRUE(leaver.ended);
  }
}

TEST(SchedulerEnd, OfAConnectionWithStalledRequests) {
  SchedulerFixture node;
  SchedulerClient& good = node.connect();
  fill(node, good, 2'000, 100);
  for (int round = 0; round < 20; ++round) {
    SchedulerClient& stuck = node.connect(kLongRequests);
    for (int i = 0; i < 300; ++i) stuck->post(message_of(request_of(OffloadId::scan, node.map())));
    stuck->ring();
    node.turns(200);
    ASSERT_TRUE(node.client_table().waits_for_clients());
    node.disconnect(stuck);
    ASSERT_TRUE(node.run_until_idle());
    EXPECT_TRUE(stuck.ended);
    EXPECT_FALSE(node.client_table().waits_for_clients());
  }
  EXPECT_EQ(held_snapshots(node), 0u);
  expect_good_service(node, good);
}

TEST(SchedulerEnd, InTheMiddleOfAMessageGivesItsMemoryBack) {
  SchedulerFixture node;
  SchedulerClient& half = node.connect();
  half->post(message_of(request_of(OffloadId::put, node.map()), "a", std::string(100'000, 'v')));
  half->ring();
  node.turns(10);
  EXPECT_GT(node.services().budget.used(), 0u);
  EXPECT_LE(node.services().budget.used(), 100'033u);
  node.disconnect(half);
  EXPECT_TRUE(half.ended);
  EXPECT_EQ(node.services().budget.used(), 0u);
}

TEST(SchedulerEnd, OfTheHolderOfASnapshotLetsItGo) {
  SchedulerFixture node;
  SchedulerClient& holder = node.connect();
  for (int i = 0; i < 10; ++i) node.call(holder, request_of(OffloadId::snapshot_open, node.map()));
  EXPECT_EQ(held_snapshots(node), 10u);
  node.disconnect(holder);
  EXPECT_EQ(held_snapshots(node), 0u);
}

// --- doorbells -----------------------------------------------------------------------------------

/// More clients than are polled all the time, idle for so long that only their doorbells are
/// watched.
std::vector<SchedulerClient*> quiet_clients(SchedulerFixture& node, int count) {
  std::vector<SchedulerClient*> clients;
  for (int i = 0; i < count; ++i) clients.push_back(&node.connect());
  node.turns(3000);
  return clients;
}

int unwatched(const std::vector<SchedulerClient*>& clients) {
  int count = 0;
  for (const SchedulerClient* client : clients) count += client->connection->watched ? 0 : 1;
  return count;
}

TEST(SchedulerDoorbells, AQuietRingIsFoundByItsBell) {
  SchedulerFixture node(no_sweeps());
  const auto clients = quiet_clients(node, 60);
  EXPECT_GE(unwatched(clients), 40);
  for (SchedulerClient* client : clients) {
    EXPECT_TRUE(node.call(*client, request_of(OffloadId::noop)).answers());
    EXPECT_TRUE(client->connection->watched);
  }
  EXPECT_EQ(node.client_table().counts().sweeps_found, 0u);
}

TEST(SchedulerDoorbells, ABellThatNeverRingsIsFoundBySweepsAndThenDistrusted) {
  SchedulerFixture node(no_sweeps());
  const auto clients = quiet_clients(node, 40);
  SchedulerClient* mute = nullptr;
  for (SchedulerClient* client : clients) {
    if (!client->connection->watched) mute = client;
  }
  ASSERT_NE(mute, nullptr);
  for (int round = 1; round <= 3; ++round) {
    ASSERT_FALSE(mute->connection->watched);
    (*mute)->post(message_of(request_of(OffloadId::noop)));
    node.turns(100);
    EXPECT_FALSE((*mute)->receive());
    EXPECT_TRUE(node.client_table().sweep());
    node.turns(2);
    EXPECT_TRUE((*mute)->receive());
    EXPECT_EQ(node.client_table().counts().sweeps_found, static_cast<std::uint64_t>(round));
    EXPECT_EQ(mute->connection->distrusted, round == 3);
    // Among others it is polled by its doorbell only again, unless it is distrusted.
    for (SchedulerClient* client : clients) {
      if (client == mute) continue;
      EXPECT_TRUE(node.call(*client, request_of(OffloadId::noop)).answers());
    }
    node.turns(3000);
  }
  EXPECT_TRUE(mute->connection->watched);
  (*mute)->post(message_of(request_of(OffloadId::noop)));
  node.turns(2);
  EXPECT_TRUE((*mute)->receive());
  EXPECT_FALSE(node.client_table().sweep());
}

TEST(SchedulerDoorbells, SweepsComeByThemselves) {
  FixtureOptions options;
  options.sweep_ns = 1;
  SchedulerFixture node(options);
  const auto clients = quiet_clients(node, 40);
  for (SchedulerClient* client : clients) {
    (*client)->post(message_of(request_of(OffloadId::noop)));
    node.turns(600);
    EXPECT_TRUE((*client)->receive());
  }
}

TEST(SchedulerDoorbells, ScribblingOverTheWholePageOnlyMakesTheSchedulerLook) {
  SchedulerFixture node(no_sweeps());
  const auto clients = quiet_clients(node, 60);
  SchedulerClient& good = node.connect(kSmallRings, 2);
  base::Random random(base::seed_from_environment(8));
  for (int round = 0; round < 300; ++round) {
    for (std::uint64_t i = 0; i < wire::kDoorbellsPerPage; ++i) {
      base::store_shared(clients[0]->doorbells.at(i * wire::kDoorbellBytes),
                         static_cast<std::uint32_t>(random()));
    }
    expect_good_service(node, good);
  }
  for (SchedulerClient* client : clients) {
    EXPECT_TRUE(node.call(*client, request_of(OffloadId::noop)).answers());
  }
}

TEST(SchedulerDoorbells, AMessageThatIsRungForBeforeItIsThereIsFoundWhenItIs) {
  SchedulerFixture node(no_sweeps());
  const auto clients = quiet_clients(node, 40);
  for (SchedulerClient* client : clients) {
    base::store_shared(client->doorbells.at(client->connection->doorbell * wire::kDoorbellBytes),
                       std::uint32_t{1});
  }
  node.turns(3000);
  EXPECT_GE(unwatched(clients), 20);
  for (SchedulerClient* client : clients) {
    (*client)->post(message_of(request_of(OffloadId::noop)));
    (*client)->post(message_of(request_of(OffloadId::noop)));
    (*client)->ring();
    EXPECT_TRUE(node.wait(*client).answers());
  }
}

// --- work that was handed over -------------------------------------------------------------------

TEST(SchedulerConcurrency, NobodyEndsASchedulerWhileTheHelperStillWakesIt) {
  std::atomic<bool> answered{false};
  std::atomic<bool> seen{false};
  SchedulerFixture node;
  node.scheduler().wake = [&] {
    // If the scheduler went on meanwhile it may be destroyed by now, and this function's state with
    // it.
    for (int i = 0; i < 10'000 && !answered; ++i) std::this_thread::yield();
    if (answered) seen = true;
  };
  SchedulerClient& client = node.connect();
  wire::MapShape shape{};
  shape.node_bytes = 1024;
  EXPECT_EQ(
      node.call(client, request_of(OffloadId::map_create), "made", bytes_of(shape)).header.code, 0);
  answered = true;
  EXPECT_EQ(node.call(client, request_of(OffloadId::map_open), "made").header.code, 0);
  node.scheduler().wake = [] {};
  EXPECT_FALSE(seen);
}

// --- sleeping ------------------------------------------------------------------------------------

TEST(SchedulerSleep, SleepingReadersAreWokenAndOthersAreNot) {
  SchedulerFixture node;
  SchedulerClient& client = node.connect();
  EXPECT_TRUE(node.call(client, request_of(OffloadId::noop)).answers());
  EXPECT_EQ(node.client_table().counts().wakes, 0u);
  std::byte* const word =
      client->memory() + client->layout().response_side(0) + offsetof(wire::ResponseSide, sleeping);
  base::store_shared(word, std::uint32_t{1});
  node.turns(10);
  EXPECT_EQ(base::load_shared<std::uint32_t>(word), 1u);
  EXPECT_TRUE(node.call(client, request_of(OffloadId::noop)).answers());
  EXPECT_EQ(base::load_shared<std::uint32_t>(word), 0u);
  EXPECT_EQ(node.client_table().counts().wakes, 1u);
}

TEST(SchedulerSleep, AnAnswerThatWaitsForAnotherWriterIsNewsUntilItIsGiven) {
  SchedulerFixture node;
  SchedulerClient& client = node.connect();
  memory::VersionClock& clock = node.core().clock;
  const std::uint64_t version = clock.take();
  wire::BatchEntry entry{};
  entry.kind = static_cast<std::uint8_t>(wire::BatchKind::put);
  entry.key_bytes = 1;
  client->post(
      message_of(request_of(OffloadId::write_batch, node.map(), 1, 1), {}, bytes_of(entry) + "a"));
  client->ring();
  node.turns(100);
  EXPECT_FALSE(client->receive());
  EXPECT_TRUE(node.scheduler().has_news());  // no doorbell rings when the version is released
  clock.done(version);
  EXPECT_TRUE(node.wait(client).applied());
  EXPECT_FALSE(node.scheduler().has_news());
}

}  // namespace
}  // namespace espalier::offload

// SPDX-License-Identifier: Apache-2.0
#include "tools/top_view.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "node/node_number.hpp"
#include "node/testing/metrics_fixture.hpp"

namespace espalier::tools {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

node::NodeNumbers reading(std::uint64_t uptime_ns, std::uint64_t gets, std::uint64_t version) {
  node::NodeNumbers numbers;
  numbers.start_time_seconds = 1e9;
  numbers.uptime_ns = uptime_ns;
  numbers.set("requests_refused", gets / 10);
  node::OffloadNumbers get;
  get.id = wire::OffloadId::get;
  get.name = "get";
  get.requests = gets;
  numbers.offloads = {get};
  numbers.workers = {{1, 2, gets / 2, gets / 4}, {3, 4, gets / 2, gets / 4}};
  numbers.sampled.count = 1;
  numbers.sampled.objects = {node::object_of(ObjectKind::map, 1, "m",
                                             {{"items", 10},
                                              {"node_bytes", 300},
                                              {"value_bytes", 30},
                                              {"retired_bytes", 3},
                                              {"read_version", version - 5},
                                              {"write_version", version}})};
  numbers.set("memory_taken_bytes", 1000);
  return numbers;
}

TEST(TopView, TheFirstReadingIsOfTheNodesWholeLife) {
  const TopView view = view_of(nullptr, reading(10 * kSecond, 1000, 50));
  EXPECT_TRUE(view.since_start);
  EXPECT_EQ(view.seconds, 10);
  EXPECT_EQ(view.requests_per_s, 100);
  EXPECT_EQ(view.refused_per_s, 10);
  EXPECT_EQ(view.maps.at(0).writes_per_s, 5);
}

TEST(TopView, LaterOnesAreOfTheTimeBetweenByTheNodesClock) {
  const auto before = reading(10 * kSecond, 1000, 50);
  const TopView view = view_of(&before, reading(12 * kSecond, 5000, 250));
  EXPECT_FALSE(view.since_start);
  EXPECT_EQ(view.seconds, 2);
  EXPECT_EQ(view.requests_per_s, 2000);
  EXPECT_EQ(view.offloads.at(0).per_s, 2000);
  EXPECT_EQ(view.offloads.at(0).requests, 5000U);
  EXPECT_EQ(view.refused_per_s, 200);
  EXPECT_EQ(view.sleeps_per_s, 2000);
  EXPECT_EQ(view.wake_ups_per_s, 1000);
  EXPECT_EQ(view.in_flight, 4U);
  EXPECT_EQ(view.connections, 6U);
  EXPECT_EQ(view.maps.at(0).writes_per_s, 100);
  EXPECT_EQ(view.maps.at(0).bytes_per_item, 33);
  EXPECT_EQ(view.maps.at(0).unreleased, 5U);
  EXPECT_EQ(view.spare_bytes, 1000U - 333);
}

TEST(TopView, ANodeThatWasStartedAnewBeginsAnew) {
  const auto before = reading(10 * kSecond, 1000, 50);
  auto now = reading(2 * kSecond, 100, 8);
  now.start_time_seconds += 60;
  EXPECT_TRUE(view_of(&before, now).since_start);
  EXPECT_EQ(view_of(&before, now).requests_per_s, 50);
  // And so does a clock that went back.
  EXPECT_TRUE(view_of(&before, reading(10 * kSecond, 1000, 50)).since_start);
}

TEST(TopView, WhatWentBackHasNotMoved) {
  const auto before = reading(10 * kSecond, 1000, 500);
  auto now = reading(11 * kSecond, 10, 50);
  now.sampled.objects[0].id = 2;
  const TopView view = view_of(&before, now);
  EXPECT_EQ(view.requests_per_s, 0);
  EXPECT_EQ(view.sleeps_per_s, 0);
  EXPECT_EQ(view.maps.at(0).writes_per_s, 50) << "another map of the same name";
  now.sampled.objects[0].id = before.sampled.objects[0].id;
  EXPECT_EQ(view_of(&before, now).maps.at(0).writes_per_s, 0) << "the same map, of fewer writes";
}

TEST(TopView, MapsAndOffloadsMayComeAndGo) {
  auto before = reading(10 * kSecond, 1000, 50);
  before.sampled.objects[0].id = 77;
  before.offloads[0].id = wire::OffloadId::put;
  before.workers.clear();
  const TopView view = view_of(&before, reading(11 * kSecond, 1000, 50));
  EXPECT_EQ(view.maps.at(0).writes_per_s, 50);
  EXPECT_EQ(view.offloads.at(0).per_s, 1000);
  EXPECT_EQ(view.sleeps_per_s, 1000);
}

TEST(TopView, ADeviceHasRatesOfItsOwn) {
  auto before = reading(10 * kSecond, 1000, 50);
  node::set(before, {{"device_round_trips", 100},
                     {"device_read_bytes", 1000},
                     {"device_descents", 10},
                     {"connections_limited", 3},
                     {"snapshots_expired", 1}});
  auto now = reading(12 * kSecond, 5000, 250);
  node::set(now, {{"device_round_trips", 300},
                  {"device_read_bytes", 9000},
                  {"device_descents", 50},
                  {"device_hits", 30},
                  {"device_forwarded", 8},
                  {"connections_limited", 13},
                  {"snapshots_expired", 5}});
  const TopView view = view_of(&before, now);
  EXPECT_EQ(view.device_round_trips_per_s, 100);
  EXPECT_EQ(view.device_bytes_per_s, 4000);
  EXPECT_EQ(view.device_forwarded_per_s, 4);
  EXPECT_EQ(view.device_hits, 0.75);
  EXPECT_EQ(view.limited_per_s, 5);
  EXPECT_EQ(view.snapshots_expired_per_s, 2);
}

node::NodeNumbers with_table(std::uint64_t uptime_ns, std::uint64_t queries) {
  node::NodeNumbers numbers = reading(uptime_ns, 1000, 50);
  numbers.sampled.objects.push_back(node::object_of(ObjectKind::table, 2, "t",
                                                    {{"rows", 100},
                                                     {"memory_bytes", 400},
                                                     {"queries_ended", queries},
                                                     {"queries_failed", queries / 10},
                                                     {"read_bytes", 1000 * queries},
                                                     {"sent_bytes", 10 * queries}}));
  node::set(numbers, {{"queries_running", 1},
                      {"queries_waiting", 2},
                      {"queries_ended", queries},
                      {"queries_failed", queries / 10},
                      {"queries_refused", queries / 5},
                      {"helper_threads", 4},
                      {"helper_busy_nanoseconds", queries * 10'000'000}});
  return numbers;
}

TEST(TopView, AccessControlHasRatesToo) {
  auto before = reading(10 * kSecond, 1000, 50);
  auto now = reading(12 * kSecond, 1000, 50);
  node::set(before, {{"requests_denied", 10},
                     {"authentications", 5, "accepted"},
                     {"authentications", 1, "wrong_proof"},
                     {"authentications", 1, "failed"},
                     {"authentications", 1, "timed_out"},
                     {"authentications", 1, "limited"},
                     {"pending_peers", 9}});
  node::set(now, {{"requests_denied", 30},
                  {"authentications", 9, "accepted"},
                  {"authentications", 2, "wrong_proof"},
                  {"authentications", 3, "failed"},
                  {"authentications", 4, "timed_out"},
                  {"authentications", 5, "limited"},
                  {"pending_peers", 2}});
  const TopView view = view_of(&before, now);
  EXPECT_EQ(view.denied_per_s, 10);
  EXPECT_EQ(view.authenticated_per_s, 2);
  EXPECT_EQ(view.rejected_per_s, 5);
  EXPECT_EQ(view.numbers.value("pending_peers"), 2u);
}

TEST(TopView, TablesQueriesAndHelpersHaveRatesToo) {
  const auto before = with_table(10 * kSecond, 100);
  const TopView view = view_of(&before, with_table(12 * kSecond, 300));
  EXPECT_EQ(view.tables.at(0).queries_per_s, 110);  // 200 ended and 20 failed
  EXPECT_EQ(view.tables.at(0).read_bytes_per_s, 100'000);
  EXPECT_EQ(view.tables.at(0).sent_bytes_per_s, 1000);
  EXPECT_EQ(view.queries_per_s, 130);
  EXPECT_EQ(view.queries_failed_per_s, 10);
  EXPECT_EQ(view.queries_refused_per_s, 20);
  EXPECT_DOUBLE_EQ(view.helpers_busy, 0.25);  // two seconds of four threads
  EXPECT_EQ(view.table_bytes, 400U);
  EXPECT_EQ(view.spare_bytes, 1000U - 333 - 400);
  // Another table of the same name begins anew.
  auto another = with_table(11 * kSecond, 10);
  another.sampled.objects[1].id = 3;
  EXPECT_EQ(view_of(&before, another).tables.at(0).queries_per_s, 11);
}

node::NodeNumbers with_sequencer(std::uint64_t uptime_ns, std::uint32_t epoch, std::uint64_t first,
                                 std::uint64_t next, std::uint64_t requests) {
  node::NodeNumbers numbers = reading(uptime_ns, 0, 50);
  numbers.sampled.objects.push_back(node::object_of(
      ObjectKind::sequencer, 2, "s",
      {{"first", first}, {"next", next}, {"requests", requests}, {"adds", 1}, {"epoch", epoch}}));
  for (const auto& [name, value] : {std::pair("feed_entries", requests), {"feed_followers", 2}}) {
    numbers.sampled.objects[0].samples.push_back(
        {name, "", "", wire::SampleType::gauge, {}, value});
  }
  return numbers;
}

TEST(TopView, SequencersAndFeedsHaveRatesToo) {
  const auto before = with_sequencer(10 * kSecond, 1, 0, 1'000, 100);
  const TopView view = view_of(&before, with_sequencer(12 * kSecond, 1, 0, 5'000, 300));
  EXPECT_EQ(view.sequencers.at(0).numbers_per_s, 2'000);
  EXPECT_EQ(view.sequencers.at(0).requests_per_s, 100);
  EXPECT_EQ(view.sequencers.at(0).adds_per_s, 0);
  EXPECT_EQ(view.feed_followers, 2U);
  EXPECT_EQ(view.feed_moves_per_s, 100);
  // What lies between two epochs was not given.
  const TopView later = view_of(&before, with_sequencer(11 * kSecond, 2, 90'000, 90'500, 300));
  EXPECT_EQ(later.sequencers.at(0).numbers_per_s, 500);
  // Another one of the same name begins anew.
  auto of_another = with_sequencer(11 * kSecond, 1, 0, 10, 5);
  of_another.sampled.objects[1].id = 3;
  const TopView another = view_of(&before, of_another);
  EXPECT_EQ(another.sequencers.at(0).numbers_per_s, 10);
  EXPECT_EQ(another.sequencers.at(0).requests_per_s, 5);
}

TEST(TopView, LatenciesAreThoseOfTheInterval) {
  auto before = reading(10 * kSecond, 1000, 50);
  before.offloads[0].durations.buckets.fill(7);
  auto now = reading(11 * kSecond, 2000, 50);
  now.offloads[0].durations = before.offloads[0].durations;
  EXPECT_FALSE(view_of(&before, now).offloads.at(0).p50_ns) << "none was timed";
  now.offloads[0].durations.buckets[2] += 98;  // to 512 ns
  now.offloads[0].durations.buckets[6] += 2;   // to 2048 ns
  now.offloads[0].durations.sum_ns += 50'000;
  const OffloadRates rates = view_of(&before, now).offloads.at(0);
  EXPECT_EQ(rates.p50_ns, 512U);
  EXPECT_EQ(rates.p99_ns, 2048U);
  EXPECT_EQ(rates.mean_ns, 500);
  now.offloads[0].durations.buckets.back() += 10'000;
  EXPECT_EQ(view_of(&before, now).offloads.at(0).p50_ns, std::uint64_t{1} << 34);
}

TEST(TopView, BearsNumbersThatCannotBe) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  node::NodeNumbers now = reading(kMost, kMost, kMost);
  now.offloads[0].durations.buckets.fill(kMost);
  now.workers = {{kMost, kMost, kMost, kMost}, {kMost, kMost, kMost, kMost}};
  now.sampled = with_table(kMost, kMost).sampled;
  for (wire::SampledObject& object : now.sampled.objects) {
    for (wire::Sample& sample : object.samples) sample.value = kMost;
  }
  for (const node::NodeNumber& number : node::node_numbers()) {
    if (number.read != nullptr) now.set(number.name, kMost, number.label_value);
  }
  const TopView view = view_of(nullptr, now);
  EXPECT_GT(view.requests_per_s, 0);
  EXPECT_EQ(view_of(nullptr, node::NodeNumbers{}).requests_per_s, 0);
}

TEST(TopView, CountersOfOtherKindsHaveRates) {
  using wire::SampleType;
  const auto at = [](std::uint64_t uptime_ns, std::uint32_t id, std::uint64_t lookups) {
    node::NodeNumbers numbers = reading(uptime_ns, 1, 10);
    numbers.sampled.objects = {
        {static_cast<ObjectKind>(200),
         "",
         id,
         "a",
         {{"items", "", "", SampleType::gauge, {}, 5},
          {"lookups", "", "", SampleType::counter, {{"queue", "in"}}, lookups},
          {"lookups", "", "", SampleType::counter, {{"queue", "out"}}, lookups / 2}}}};
    return numbers;
  };
  using Rates = std::vector<std::optional<double>>;
  const node::NodeNumbers before = at(kSecond, 7, 100);
  const TopView view = view_of(&before, at(3 * kSecond, 7, 140));
  ASSERT_EQ(view.objects.size(), 1U);
  EXPECT_EQ(view.objects[0].per_s, (Rates{std::nullopt, 20, 10}));
  EXPECT_EQ(view_of(nullptr, at(2 * kSecond, 7, 140)).objects[0].per_s,
            (Rates{std::nullopt, 70, 35}));
  EXPECT_EQ(view_of(&before, at(3 * kSecond, 8, 140)).objects[0].per_s,
            (Rates{std::nullopt, 70, 35}))
      << "another object of the same name";
  EXPECT_EQ(view_of(&before, at(3 * kSecond, 7, 1)).objects[0].per_s, (Rates{std::nullopt, 0, 0}))
      << "which no counter does";
}

TEST(TopView, AnObjectThatWasPerhapsLeftOutHasNoRate) {
  const auto at = [](std::uint64_t uptime_ns, std::vector<std::uint32_t> ids, std::uint64_t count,
                     std::uint64_t lookups) {
    node::NodeNumbers numbers = reading(uptime_ns, 1, 10);
    numbers.sampled = {count, {}};
    for (const std::uint32_t id : ids) {
      numbers.sampled.objects.push_back(
          {static_cast<ObjectKind>(200),
           "",
           id,
           "a",
           {{"lookups", "", "", wire::SampleType::counter, {}, lookups}}});
    }
    return numbers;
  };
  using Rates = std::vector<std::optional<double>>;
  const node::NodeNumbers some = at(kSecond, {7}, 2, 1000);
  const TopView view = view_of(&some, at(2 * kSecond, {7, 8}, 2, 1010));
  ASSERT_EQ(view.objects.size(), 2U);
  EXPECT_EQ(view.objects[0].per_s, Rates{10});
  EXPECT_EQ(view.objects[1].per_s, Rates{std::nullopt});
  const node::NodeNumbers all = at(kSecond, {7}, 1, 1000);
  EXPECT_EQ(view_of(&all, at(2 * kSecond, {7, 8}, 2, 1010)).objects[1].per_s, Rates{1010})
      << "it is new";
}

// Their counters may be older than the interval.
TEST(TopView, MapsTablesAndSequencersThatWerePerhapsLeftOutHaveNoRates) {
  const auto at = [](std::uint64_t uptime_ns, std::uint64_t gone) {
    node::NodeNumbers numbers = with_table(uptime_ns, 1000);
    numbers.sampled.objects[0].samples.push_back(
        {"feed_entries", "", "", wire::SampleType::counter, {}, 70});
    numbers.sampled.objects.push_back(
        node::object_of(ObjectKind::sequencer, 3, "s",
                        {{"first", 0}, {"next", 500}, {"requests", 40}, {"adds", 30}}));
    numbers.sampled.objects.erase(numbers.sampled.objects.begin(),
                                  numbers.sampled.objects.begin() + static_cast<int>(gone));
    numbers.sampled.count = 3;
    return numbers;
  };
  const node::NodeNumbers now = at(2 * kSecond, 0);
  const node::NodeNumbers some = at(kSecond, 3);
  node::NodeNumbers none = at(kSecond, 3);  // as after a reading without samples
  none.sampled.count = 1;
  for (const node::NodeNumbers& before : {some, none}) {
    const TopView view = view_of(&before, now);
    EXPECT_EQ(view.maps.at(0).writes_per_s, 0);
    EXPECT_EQ(view.maps.at(0).moves_per_s, 0);
    EXPECT_EQ(view.feed_moves_per_s, 0);
    EXPECT_EQ(view.tables.at(0).queries_per_s, 0);
    EXPECT_EQ(view.tables.at(0).read_bytes_per_s, 0);
    EXPECT_EQ(view.tables.at(0).sent_bytes_per_s, 0);
    EXPECT_EQ(view.sequencers.at(0).numbers_per_s, 0);
    EXPECT_EQ(view.sequencers.at(0).requests_per_s, 0);
    EXPECT_EQ(view.sequencers.at(0).adds_per_s, 0);
  }
  node::NodeNumbers all = at(kSecond, 3);
  all.sampled.count = 0;
  const TopView view = view_of(&all, now);
  EXPECT_EQ(view.maps.at(0).writes_per_s, 50) << "it is new";
  EXPECT_EQ(view.tables.at(0).queries_per_s, 1100);
  EXPECT_EQ(view.sequencers.at(0).numbers_per_s, 500);
}

TEST(TopView, WhatIsSpareIsKnownOnlyWhereAllObjectsAre) {
  node::NodeNumbers numbers = reading(kSecond, 1, 10);
  EXPECT_EQ(view_of(nullptr, numbers).spare_bytes, 1000U - 333);
  EXPECT_EQ(view_of(nullptr, numbers, false).spare_bytes, std::nullopt);
  numbers.sampled.count = 2;
  const TopView view = view_of(nullptr, numbers);
  EXPECT_EQ(view.spare_bytes, std::nullopt);
  EXPECT_EQ(view.node_bytes, 300U);
}

TEST(TopView, TellsWhatHoldsMemoryWhereObjectsAreLeftOut) {
  node::NodeNumbers numbers = reading(kSecond, 1, 10);
  node::set(numbers, {{"snapshots", 3}, {"epoch_current", 20}, {"epoch_oldest", 8}});
  numbers.sampled.objects.clear();
  EXPECT_EQ(holders(view_of(nullptr, numbers)), "3 snapshots");
  numbers.holders = {{memory::Holder::Kind::epoch, "process 1", "", 8, 100}};
  EXPECT_EQ(holders(view_of(nullptr, numbers)), "3 snapshots, readers 12 behind");
  numbers.sampled.count = 0;
  EXPECT_EQ(holders(view_of(nullptr, numbers)), "nothing") << "of no map";
  EXPECT_EQ(holders(view_of(nullptr, numbers, false)), "3 snapshots, readers 12 behind");
}

TEST(TopView, TellsWhatHoldsMemory) {
  const auto holders_of = [](const node::NodeNumbers& of) { return holders(view_of(nullptr, of)); };
  node::NodeNumbers numbers = reading(kSecond, 1, 10);
  numbers.set("epoch_current", 20);
  numbers.set("epoch_oldest", 20);
  EXPECT_EQ(holders_of(numbers), "nothing");
  numbers.set("epoch_oldest", 8);
  EXPECT_EQ(holders_of(numbers), "readers 12 behind");
  numbers.sampled.objects[0].samples.push_back(
      {"snapshots", "", "", wire::SampleType::gauge, {}, 1});
  EXPECT_EQ(holders_of(numbers), "1 snapshot, readers 12 behind");
  std::erase_if(numbers.sampled.objects[0].samples,
                [](const wire::Sample& sample) { return sample.name == "retired_bytes"; });
  EXPECT_EQ(holders_of(numbers), "1 snapshot");
  numbers.set("leases", 2);
  EXPECT_EQ(holders_of(numbers), "1 snapshot, 2 leases");
}

}  // namespace
}  // namespace espalier::tools

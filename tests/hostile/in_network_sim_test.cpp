// SPDX-License-Identifier: Apache-2.0
// A map behind a switch, or two in a row: a node, a client that walks the map by READs, and between
// them a switch with tables compiled from the map's tree. Gets through it take one round trip, and
// answers are right whatever happens to packets, tables and map.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/testing/seeds.hpp"
#include "dataplane/key_number.hpp"
#include "index/testing/followed_index.hpp"
#include "kinds/map/offload/map_reads.hpp"
#include "tests/support/shim_tampering.hpp"
#include "tests/support/switch_world.hpp"

namespace espalier::test {
namespace {

const MapOptions kOptions{.node_bytes = 4096, .log_bytes = 512};

void expect_one_trip(SwitchWorld& world) {
  const std::uint32_t some[] = {0, 1, 17, 4999, 10'000, 19'999};
  for (const std::uint32_t i : some) world.trips_of(SwitchWorld::key(i));  // page table learned
  for (const std::uint32_t i : some) EXPECT_GE(world.trips_of(SwitchWorld::key(i)), 5u);
  world.install({.ranges = 4000});
  world.use_switch();
  const std::uint64_t redirected = world.through.counters().redirected;
  for (const std::uint32_t i : some) EXPECT_EQ(world.trips_of(SwitchWorld::key(i)), 1u);
  EXPECT_EQ(world.trips_of(SwitchWorld::key(20'001)), 1u);  // is not there
  EXPECT_GE(world.through.counters().redirected - redirected, std::size(some) + 1);
}

TEST(InNetworkSim, AGetTakesOneTripWhereItTookSeveral) {
  SwitchWorld world(base::seed_from_environment(5), kOptions, 20'000);
  expect_one_trip(world);
  EXPECT_EQ(world.through.counters().redirected, 7u) << "no READ was sent twice";
  EXPECT_EQ(world.reader->restarts(), 0u);
}

// The same between ports of this process, in the machine's time.
TEST(InNetworkExchange, AGetTakesOneTripWhereItTookSeveral) {
  SwitchWorld world(base::seed_from_environment(5), kOptions, 20'000, SwitchWorld::Way::exchange);
  expect_one_trip(world);
}

// What a READ meets that no table has is answered by the node.
TEST(InNetworkSim, WithoutTablesTheNodeAnswersByItself) {
  SwitchWorld world(base::seed_from_environment(6), kOptions, 5000);
  world.use_switch();
  for (const std::uint32_t i : {0u, 77u, 4999u}) {
    EXPECT_EQ(world.trips_of(SwitchWorld::key(i)), 1u);
  }
  EXPECT_EQ(world.through.counters().redirected, 0u);
}

// The entry of a leaf that is replaced repeatedly brings the current leaf.
TEST(InNetworkSim, TablesThatAreLateStillTakeOneTrip) {
  SwitchWorld world(base::seed_from_environment(13), kOptions, 5000);
  const std::uint32_t some[] = {0u, 777u, 4999u};
  int written = 0;
  const auto put_often = [&](std::uint32_t i) {
    for (int j = 0; j < 40; ++j) world.put(SwitchWorld::key(i), "new " + std::to_string(++written));
  };
  // Ascending keys leave leaves full: now those of these are split, and are replaced from here on.
  for (const std::uint32_t i : some) put_often(i);
  world.install({.ranges = 4000});
  world.use_switch();
  for (const std::uint32_t i : some) {
    const std::string name = SwitchWorld::key(i);
    world.trips_of(name);
    for (int round = 0; round < 4; ++round) {
      put_often(i);
      EXPECT_EQ(world.trips_of(name), 1u) << name << ", round " << round;
    }
  }
  EXPECT_GT(world.met.followed, 3u);
  EXPECT_EQ(world.met.nothing, 0u);
  EXPECT_EQ(world.reader->restarts(), 0u);
}

// A table's entry of a leaf that was split since brings its lower half, which names the upper one.
TEST(InNetworkSim, TheUpperHalfOfALeafThatWasSplitIsNear) {
  SwitchWorld world(base::seed_from_environment(13), kOptions, 5000);
  world.install({.ranges = 4000});
  world.use_switch();
  world.trips_of(SwitchWorld::key(2'000));
  // Of ascending keys leaves are full, so these split some.
  for (int i = 0; i < 200; ++i) {
    world.put(SwitchWorld::key(2'000 + i % 20), "longer values " + std::to_string(i));
  }
  std::uint64_t by_table = 0;
  std::uint64_t led_on = 0;
  for (std::uint32_t i = 1'990; i < 2'030; ++i) {
    const std::uint64_t trips = world.trips_of(SwitchWorld::key(i));
    // Plus those of a walk without a cache: two words of the page table, a head, and the rest.
    EXPECT_LE(trips, i == 1'990 ? 6u : 5u) << i;
    by_table += trips == 1 ? 1 : 0;
    led_on += trips > 1 ? 1 : 0;
  }
  EXPECT_GE(by_table, 6u);
  EXPECT_GE(led_on, 14u);
}

// If tables end above the leaves, the rest of the path is walked.
TEST(InNetworkSim, SmallTablesSaveFewerTrips) {
  SwitchWorld world(base::seed_from_environment(7), kOptions, 20'000);
  const auto name = SwitchWorld::key(12'345);
  world.trips_of(name);
  const std::uint64_t alone = world.trips_of(name);
  world.install({.ranges = 1, .sets = 0});
  world.use_switch();
  const std::uint64_t with = world.trips_of(name);
  EXPECT_GT(with, 1u);
  EXPECT_LT(with, alone);
}

TEST(InNetworkSim, OfANodeLargerThanAPacketTheRestIsReadToo) {
  SwitchWorld world(base::seed_from_environment(8), {.node_bytes = 8192, .log_bytes = 512}, 5000);
  world.install({.ranges = 4000});
  world.use_switch();
  // Its beginning; then, in one doorbell, chunk, log, fences, and what confirms them.
  for (std::uint32_t i = 0; i < 5000; i += 333) {
    EXPECT_EQ(world.trips_of(SwitchWorld::key(i)), 2u);
  }
  EXPECT_EQ(world.trips_of(SwitchWorld::key(2500) + "x"), 2u) << "it is not there";
}

TEST(InNetworkSim, AValueOutOfLineIsReadByItself) {
  SwitchWorld world(base::seed_from_environment(9), kOptions, 1000);
  world.put(SwitchWorld::key(500), std::string(10'000, 'v'));
  world.install({.ranges = 4000});
  world.use_switch();
  // The leaf; then, in one doorbell, the value and what confirms it.
  EXPECT_EQ(world.trips_of(SwitchWorld::key(500)), 2u);
}

/// A scan in flight, and what it has handed over.
struct Scan final : Handler {
  Request request;
  std::vector<std::string> keys;
  bool over = false;
  bool items(std::uint64_t, std::span<const Item> some) override {
    for (const Item& item : some) keys.emplace_back(item.key);
    return true;
  }
  void done(const Completion& completion) override { over = completion.ok; }
};

// A scan begins at the leaf that was sent, and continues from leaf to leaf by itself.
TEST(InNetworkSim, AScanBeginsThroughTheSwitch) {
  SwitchWorld world(base::seed_from_environment(11), kOptions, 5000);
  world.install({.ranges = 4000});
  world.use_switch();
  for (const std::uint32_t limit : {1u, 20u, 700u}) {
    Scan scan;
    const std::string low = SwitchWorld::key(1234);
    scan.request.op = Op::scan;
    scan.request.key = low;
    scan.request.limit = limit;
    const std::uint64_t redirected = world.through.counters().redirected;
    world.reader->submit(tree::WalkRequest{&scan.request, &scan, nullptr, {}, {}});
    for (int i = 0; i < 100'000 && !scan.over; ++i) world.turn();
    ASSERT_EQ(scan.keys.size(), limit);
    for (std::uint32_t i = 0; i < limit; ++i) {
      ASSERT_EQ(scan.keys[i], SwitchWorld::key(1234 + i));
    }
    EXPECT_EQ(world.through.counters().redirected, redirected + 1);
  }
}

// A session whose key is revoked has lost the shared ones, too.
TEST(InNetworkSim, AFencedSessionGetsNoAnswers) {
  SwitchWorld world(base::seed_from_environment(10), kOptions, 1000);
  world.install({.ranges = 4000});
  world.use_switch();
  world.trips_of(SwitchWorld::key(1));
  world.ask(SwitchWorld::key(2));
  world.own.revoke();
  for (int i = 0; i < 1000 && !world.gets.back()->over; ++i) world.turn();
  EXPECT_EQ(world.client_pair->state(), fabric::QueuePair::State::error);
  ASSERT_TRUE(world.gets.back()->over || world.reader->pending() == 1);
  EXPECT_FALSE(world.gets.back()->found);
}

// A READ that is changed in flight leaves no gap in its pair's sequence, nor does the next one.
// With ESPALIER_SEEDS=1000 it is a million gets.
TEST(InNetworkSim, TablesThatChangeAreNeverAGapInAPair) {
  constexpr std::uint64_t kGetsOfASeed = 1000;
  const std::uint64_t seed = base::seed_from_environment(12);
  base::Seeds seeds(20);
  SwitchWorld world(seed, kOptions, 5000);
  base::Random random(seed);
  world.install({.ranges = 4000});
  world.use_switch();
  const dataplane::IndexTables good = world.tables;
  bool changing = false;
  world.on_packet = [&] {
    if (std::exchange(changing, true)) return;
    switch (random.below(600)) {
      case 0: world.clear(); break;
      case 1: world.install(good); break;
      case 2: world.install(world.lying(random)); break;
      default: break;
    }
    changing = false;
  };
  for (std::uint64_t i = 0; i < seeds.count(); ++i) {
    const std::uint64_t until = world.answers + kGetsOfASeed;
    while (world.answers + world.gets.size() < until || !world.gets.empty()) {
      if (world.gets.size() < 4 && world.answers + world.gets.size() < until) {
        world.ask(SwitchWorld::key(static_cast<std::uint32_t>(random.below(5010))));
      }
      world.turn();
      ASSERT_EQ(world.validate(), "");
      ASSERT_EQ(world.client_pair->state(), fabric::QueuePair::State::connected);
    }
    seeds.done();
  }
  EXPECT_EQ(world.errors, 0u);
  EXPECT_EQ(world.client.counters().sequence_naks, 0u);
  EXPECT_EQ(world.client.counters().go_back_n_events, 0u);
  EXPECT_EQ(world.host.counters().gaps, 0u);
  EXPECT_EQ(world.client.counters().malformed + world.host.counters().malformed, 0u);
  EXPECT_GT(world.through.counters().redirected, 0u);
  seeds.report("gets", world.answers);
  seeds.report("READs redirected", world.through.counters().redirected);
}

// The fat root in the first switch knows no leaves, and the second none without it.
TEST(InNetworkSim, AGetTakesOneTripThroughTwoSwitchesInARow) {
  SwitchWorld world(base::seed_from_environment(14), {.node_bytes = 1024, .log_bytes = 128}, 20'000,
                    SwitchWorld::Way::network, 1000, SwitchWorld::Switches::two);
  const dataplane::TableLimits limits{.ranges = 20, .sets = 3, .nodes_per_set = 4000};
  world.install(limits);
  world.use_switch(1024);
  const auto& counters = world.through.counters();
  for (std::uint32_t i = 0; i < 20'000; i += 997) {
    EXPECT_EQ(world.trips_of(SwitchWorld::key(i)), 1u) << i;
  }
  EXPECT_EQ(counters.carried, 21u);
  EXPECT_EQ(counters.redirected, 21u);
  EXPECT_EQ(world.met.leaves, 21u);
  EXPECT_EQ(world.met.resolved, 0u);
  // Of tables of another generation in the second, and of none, the node answers by itself.
  world.install_in(false, &world.tables);
  EXPECT_EQ(world.trips_of(SwitchWorld::key(5)), 1u);
  world.install_in(false, nullptr);
  EXPECT_EQ(world.trips_of(SwitchWorld::key(5)), 1u);
  EXPECT_EQ(counters.shims_removed, 2u);
  EXPECT_EQ(counters.redirected, 21u);
  EXPECT_EQ(world.met.resolved, 2u);
  // And with an empty first one: then no hint says where the walk continues.
  world.install(limits);
  world.install_in(true, nullptr);
  EXPECT_EQ(world.trips_of(SwitchWorld::key(5)), 1u);
  EXPECT_EQ(counters.carried, 23u);
  EXPECT_EQ(world.met.resolved, 3u);
  EXPECT_EQ(world.reader->restarts(), 0u);
}

// Of so many READs of random keys, those that such tables send to where the node has the leaf, or
// what has replaced it.
double share_of_good(place::FollowedIndex& index, const dataplane::IndexTables& tables,
                     base::Random& random, int reads) {
  const auto at_node = *offload::MapReads::create(index.store, index.map, "user");
  std::vector<std::byte> node(index.map->geometry.node_bytes);
  int good = 0;
  for (int i = 0; i < reads; ++i) {
    const std::string key = place::FollowedIndex::key_of(random.below(place::FollowedIndex::kKeys));
    const std::uint64_t to = dataplane::find(tables, dataplane::key_number("user", key)).address;
    at_node->read_at(to - place::FollowedIndex::kBase, node);
    const tree::NodeView view(node.data(), index.map->geometry);
    const std::uint64_t came = place::FollowedIndex::kBase + view.self_ref().offset();
    good += came == index.leaf_of(key) ? 1 : 0;
  }
  return static_cast<double>(good) / reads;
}

// A minute of 300 inserts and 300 updates a second on a million keys, on as many fewer keys. Tables
// of a minute ago are good for as long as their key is: the node lets two generations be.
TEST(InNetworkSim, EntriesThatFollowAWrittenMapRedirectMostReads) {
  using place::FollowedIndex;
  constexpr std::uint64_t kSeconds = 60;
  constexpr std::uint64_t kWrites = 600 * FollowedIndex::kKeys * kSeconds / 1'000'000;
  base::Random random(base::seed_from_environment(19));
  FollowedIndex index;
  const dataplane::IndexTables at_first = index.known;
  double followed = 0;
  std::uint64_t written = 0;
  for (std::uint64_t second = 1; second <= kSeconds; ++second) {
    for (; written < kWrites * second / kSeconds; ++written) {
      const std::string key = FollowedIndex::key_of(random.below(FollowedIndex::kKeys));
      index.user.put(written % 2 == 0 ? key : key + std::to_string(written), "value");
    }
    index.store.reclaimer.collect(index.context.cache);
    static_cast<void>(index.take_feed());
    ASSERT_TRUE(index.update());
    followed += share_of_good(index, index.known, random, 200);
  }
  EXPECT_EQ(written, kWrites);
  EXPECT_LE(index.generations, 1u) << "tables of a minute ago are void";
  EXPECT_GE(followed / kSeconds, 0.9);
  EXPECT_GE(share_of_good(index, at_first, random, 2000), 0.5);
}

/// How often the rare was reached.
struct WeatherCounts {
  std::uint64_t carried = 0;
  std::uint64_t tampered = 0;
  std::uint64_t shims_removed = 0;
  std::uint64_t redirected = 0;
  std::uint64_t again = 0;  // READs that were executed more than once
  std::uint64_t lost = 0;   // packets, as the next ones
  std::uint64_t duplicated = 0;
  std::uint64_t overtaken = 0;
};

// Of odd seeds a fifth of all packets is lost.
std::string run_bad_weather(std::uint64_t seed, WeatherCounts& counts,
                            SwitchWorld::Switches switches = SwitchWorld::Switches::one) {
  constexpr std::uint32_t kKeys = 800;
  SwitchWorld world(seed, {.node_bytes = 1024, .log_bytes = 256}, kKeys, SwitchWorld::Way::network,
                    20'000, switches);
  base::Random random(seed + 100);
  const bool two = switches == SwitchWorld::Switches::two;
  const dataplane::TableLimits limits =
      two ? dataplane::TableLimits{.ranges = 4} : dataplane::TableLimits{};
  constexpr std::uint32_t kNode = 0x0A00'0002;  // where it is, as an address
  ShimTampering tampering(seed + 200, {{kNode, world.redirect.remote().key}});
  if (two) world.through.between = std::ref(tampering);
  world.install(limits);
  world.use_switch(1024);
  world.network.faults.loss = seed % 2 != 0 && !two ? 0.2 : 0.05;
  world.network.faults.duplicate = 0.1;
  world.network.faults.damage = 0.02;
  bool changing = false;
  // Between each transmission and the next one tables may be others.
  world.on_packet = [&] {
    if (changing || !random.chance(1.0 / 6)) return;
    changing = true;
    switch (random.below(two ? 5 : 3)) {
      case 0: world.clear(); break;
      case 1: world.install(limits); break;
      case 2: world.install(world.lying(random)); break;
      case 3: world.install_in(random.chance(0.5), nullptr); break;
      default: {
        const auto other = random.chance(0.5) ? world.tables : world.lying(random);
        world.install_in(random.chance(0.5), &other);
        break;
      }
    }
    changing = false;
  };
  std::string wrong;
  std::uint32_t asked = 0;
  for (int i = 0; i < 200'000 && wrong.empty() && world.answers < 300; ++i) {
    if (asked < 300 && world.gets.size() < 4) {
      world.ask(SwitchWorld::key(static_cast<std::uint32_t>(random.below(kKeys + 20))));
      ++asked;
    }
    if (random.chance(1.0 / 4)) {
      world.put(SwitchWorld::key(static_cast<std::uint32_t>(random.below(kKeys))),
                "new " + std::to_string(i) + std::string(random.below(60), 'x'));
      world.store.reclaimer.collect(world.context.cache);
    }
    world.turn();
    wrong = world.validate();
    if (world.client_pair->state() != fabric::QueuePair::State::connected) wrong = "the pair ended";
  }
  world.through.between = nullptr;
  if (wrong.empty() && world.answers < 300) wrong = "gets were not answered";
  if (wrong.empty() && world.errors > 10) wrong = std::to_string(world.errors) + " were refused";
  counts.carried += world.through.counters().carried;
  counts.tampered += tampering.count;
  counts.shims_removed += world.through.counters().shims_removed;
  counts.redirected += world.through.counters().redirected;
  counts.again += world.host.counters().reads_again;
  counts.lost += world.network.counters().lost;
  counts.duplicated += world.network.counters().duplicated;
  counts.overtaken += world.network.counters().overtaken;
  return wrong;
}

TEST(InNetworkSim, AnswersAreRightInBadWeatherWithTablesThatChangeAndLie) {
  const std::uint64_t first = base::seed_from_environment(1);
  base::Seeds seeds(6);
  WeatherCounts counts;
  for (std::uint64_t i = 0; i < seeds.count(); ++i) {
    SCOPED_TRACE(first + i);
    ASSERT_EQ(run_bad_weather(first + i, counts), "");
    seeds.done();
  }
  EXPECT_GT(counts.redirected, 0u);
  EXPECT_GT(counts.again, 0u);
  EXPECT_GT(counts.lost, 0u);
  EXPECT_GT(counts.duplicated, 0u);
  EXPECT_GT(counts.overtaken, 0u);
  seeds.report("READs redirected", counts.redirected);
  seeds.report("READs again", counts.again);
  seeds.report("packets lost", counts.lost);
  seeds.report("packets duplicated", counts.duplicated);
  seeds.report("packets overtaken", counts.overtaken);
}

// The same through two in a row, which may have different tables, or wrong ones, while frames
// between them are forged, delayed, or lost.
TEST(InNetworkSim, AnswersAreRightThroughTwoSwitchesThatDisagree) {
  const std::uint64_t first = base::seed_from_environment(31);
  base::Seeds seeds(6);
  WeatherCounts counts;
  for (std::uint64_t i = 0; i < seeds.count(); ++i) {
    SCOPED_TRACE(first + i);
    ASSERT_EQ(run_bad_weather(first + i, counts, SwitchWorld::Switches::two), "");
    seeds.done();
  }
  EXPECT_GT(counts.carried, 100u);
  EXPECT_GT(counts.tampered, 100u);
  EXPECT_GT(counts.shims_removed, 10u);
  EXPECT_GT(counts.redirected, 10u);
  EXPECT_GT(counts.again, 0u);
  EXPECT_GT(counts.lost, 0u);
  seeds.report("READs carried", counts.carried);
  seeds.report("READs tampered with", counts.tampered);
}

}  // namespace
}  // namespace espalier::test

// SPDX-License-Identifier: Apache-2.0
// Memory accesses and waits of a reader with a node cache: in a simulated fabric without faults,
// and as a client of a real node.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "client/store_impl.hpp"
#include "kinds/map/remote/testing/node_cache_forger.hpp"
#include "node/metrics.hpp"
#include "tests/support/cache_scene.hpp"
#include "tests/support/node_fixture.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kNumberedKeys = 20'000;
constexpr int kWarmGets = 2'000;

double warm_waits(const CacheSetting& setting) {
  CacheScene scene(setting);
  scene.fill(kNumberedKeys);
  Random random(seed_from_environment(1));
  scene.waits_per_get(kNumberedKeys, 3 * kWarmGets, random);  // each leaf was met, nearly
  const std::uint64_t descents = setting.cache_bytes == 0 ? 0 : scene.reader().cache()->descents();
  const std::uint64_t hits = setting.cache_bytes == 0 ? 0 : scene.reader().cache()->hits();
  const double waits = scene.waits_per_get(kNumberedKeys, kWarmGets, random);
  if (setting.cache_bytes != 0) {
    const std::uint64_t asked = scene.reader().cache()->descents() - descents;
    const std::uint64_t hit = scene.reader().cache()->hits() - hits;
    EXPECT_GE(hit * 100, asked * 99);
  }
  EXPECT_EQ(scene.reader().restarts(), 0u);
  return waits;
}

TEST(OneSidedCache, AWarmGetWaitsOnceWhereReadsKeepTheirOrder) {
  EXPECT_LE(warm_waits({}), 1.05);
  EXPECT_LE(warm_waits({.key = numbered_key}), 1.05);
  EXPECT_LE(warm_waits({.map = {.node_bytes = 8192, .log_bytes = 512}}), 1.05);
}

/// Equal beyond their first 8 bytes: all children of an interior node tie in these.
std::string padded_key(std::uint64_t i) {
  const std::string digits = std::to_string(i);
  return "user" + std::string(12 - digits.size(), '0') + digits;
}

TEST(OneSidedCache, SoItDoesWhereAllChildrenOfANodeTie) {
  for (const std::uint32_t node_bytes : {1024U, 2048U, 4096U, 8192U}) {
    CacheSetting setting{.key = padded_key, .map = {.node_bytes = node_bytes}};
    EXPECT_LE(warm_waits(setting), 1.05) << node_bytes;
    setting.groups_gets = true;
    EXPECT_LE(warm_waits(setting), 1.05) << node_bytes;
  }
}

TEST(OneSidedCache, SoDoWarmGetsOfAGroup) {
  EXPECT_LE(warm_waits({.groups_gets = true}), 1.05);
  EXPECT_LE(warm_waits({.groups_gets = true, .key = numbered_key}), 1.05);
  EXPECT_LE(warm_waits({.groups_gets = true, .map = {.node_bytes = 8192, .log_bytes = 512}}), 1.05);
}

/// Of warm gets, how many groups answered.
double answered_in_groups(const CacheSetting& setting) {
  CacheScene scene(setting);
  scene.fill(kNumberedKeys);
  Random random(seed_from_environment(1));
  scene.waits_per_get(kNumberedKeys, 3 * kWarmGets, random);
  const std::uint64_t before = scene.reader().grouped();
  scene.waits_per_get(kNumberedKeys, kWarmGets, random);
  return static_cast<double>(scene.reader().grouped() - before) / kWarmGets;
}

// As paths and addresses do: gets stay in their group, whichever prefixes tie.
TEST(OneSidedCache, GroupsKeepGetsOfKeysThatBeginAlike) {
  const auto path = [](std::uint64_t i) {
    return "/srv/data/tenants/" + std::to_string(i % 7) + "/orders/" + std::to_string(i);
  };
  for (const std::uint32_t node_bytes : {1024U, 4096U, 8192U}) {
    for (std::string (*const key)(std::uint64_t) : {+numbered_key, +padded_key, +path}) {
      const CacheSetting setting{
          .groups_gets = true, .key = key, .map = {.node_bytes = node_bytes}};
      EXPECT_GT(answered_in_groups(setting), 0.97) << key(42) << ", " << node_bytes;
    }
  }
}

TEST(OneSidedCache, GroupsBringValuesOutOfLine) {
  CacheScene scene({.groups_gets = true});
  std::map<std::string, std::string> values;
  for (std::uint64_t i = 0; i < 500; ++i) {
    const std::string key = numbered_key(i);
    const std::size_t bytes = i % 100 == 99 ? place::GetGroup::kValueMost + 1 : 400 + 15 * i;
    values[key] = std::string(bytes, static_cast<char>('a' + i % 26)) + key;
    scene.put(key, values[key]);
  }
  const auto read_all = [&] {
    for (const auto& [key, value] : values) EXPECT_EQ(scene.get(key), value) << key;
  };
  read_all();
  const std::uint64_t before = scene.reader().grouped();
  read_all();
  const std::uint64_t grouped = scene.reader().grouped() - before;
  EXPECT_GE(grouped, 480u);
  EXPECT_LE(grouped, 495u) << "longer ones are for walks";
}

TEST(OneSidedCache, AWarmGetWaitsThreeTimesElsewhere) {
  EXPECT_LE(warm_waits({.in_order = false}), 3.05);
  EXPECT_LE(warm_waits({.in_order = false, .key = numbered_key}), 3.05);
}

TEST(OneSidedCache, WithoutHeadsOfLeavesAWarmGetWaitsTwice) {
  EXPECT_LE(warm_waits({.leaf_heads = false}), 2.05);
}

TEST(OneSidedCache, WithoutACacheAGetWaitsForEachLevel) {
  EXPECT_GT(warm_waits({.cache_bytes = 0}), 5.0);
}

// The root is there although nothing else has room.
TEST(OneSidedCache, TheRootStays) {
  const double without = warm_waits({.cache_bytes = 0, .leaf_heads = false});
  CacheScene scene({.cache_bytes = 1, .leaf_heads = false});
  scene.fill(kNumberedKeys);
  Random random(seed_from_environment(1));
  scene.waits_per_get(kNumberedKeys, kWarmGets, random);
  EXPECT_LT(scene.waits_per_get(kNumberedKeys, kWarmGets, random), without - 1.5);
}

// Cached places that now hold other nodes, with other ranges. If there is none any more, the host's
// page table is read for that node, and the rest of the path is cached.
TEST(OneSidedCache, AWalkThatWasMisledPassesByWhatIsRemembered) {
  const std::function<wire::Ref()> none = [] { return wire::Ref{}; };
  // In a group the following walk does not use the cache again; if no place is right, it does.
  for (const auto& [swapped, groups] : {std::pair{true, false}, {false, false}, {true, true}}) {
    CacheScene scene({.groups_gets = groups});
    scene.fill(5'000);
    Random random(seed_from_environment(1));
    place::NodeCacheForger forger(scene.cache(), random, none);
    scene.waits_per_get(5'000, 10'000, random);
    const double warm = scene.waits_per_get(5'000, 1'000, random);
    double waits = 0;
    constexpr int kGets = 200;
    for (int i = 0; i < kGets; ++i) {
      swapped ? forger.swap_places() : forger.outdate_places();
      const std::uint64_t before = scene.reader().cache()->descents();
      waits += scene.waits_per_get(5'000, 1, random) / kGets;
      const std::uint64_t descents = scene.reader().cache()->descents() - before;
      EXPECT_GE(descents, 1u);
      EXPECT_LE(descents, swapped ? 1u : 2u);
    }
    EXPECT_GT(waits, warm + 1) << "nothing was misled";
  }
}

// As a device takes requests: one read version for all that it takes together, and a new one for
// the next.
TEST(OneSidedCache, GetsThatAreTakenTogetherReadTheVersionOnce) {
  for (const bool in_order : {true, false}) {
    CacheScene scene({.in_order = in_order, .leaf_heads = false});
    scene.fill(5'000);
    Random random(seed_from_environment(1));
    scene.waits_per_get(5'000, 10'000, random);
    EXPECT_EQ(scene.headers_read_together(100, 1), 1u);
    for (std::uint64_t from = 0; from < 5'000; from += 500) {
      EXPECT_EQ(scene.headers_read_together(from, 32), 1u) << from;
    }
  }
}

/// Waits of a get while others write, with cold heads of leaves or none, as a device has it.
double waits_while_leaves_move(bool follows, place::FeedFollower::Counts& counts) {
  CacheScene scene({.leaf_heads = false});
  scene.fill(5'000);
  Random random(seed_from_environment(1));
  if (follows) scene.follow();
  scene.waits_per_get(5'000, 20'000, random);
  double waits = 0;
  constexpr int kRounds = 300;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t number = random.below(5'000);
      scene.put(scattered_key(number), "value" + std::to_string(number));
    }
    scene.waits_per_get(5'000, 40, random);  // the feed has its time
    waits += scene.waits_per_get(5'000, 20, random) / kRounds;
  }
  if (follows) counts = scene.reader().feed()->counts();
  return waits;
}

TEST(OneSidedCache, TheFeedTellsWhereLeavesHaveMoved) {
  place::FeedFollower::Counts counts;
  const double without = waits_while_leaves_move(false, counts);
  EXPECT_EQ(counts.changes, 0u);
  const double with = waits_while_leaves_move(true, counts);
  EXPECT_LT(with, 2.05);
  EXPECT_GT(without, with + 0.1);
  EXPECT_GT(counts.changes, 1000u);
  EXPECT_GT(counts.replaced, counts.changes / 2);
  EXPECT_EQ(counts.behind, 1u);  // when it began
}

// Nodes that split and merge, LIDs that are given up, a reader that is behind time and again.
TEST(OneSidedCache, AnswersAreRightWhateverTheFeedHasTold) {
  CacheScene scene({.map = {.node_bytes = 512, .log_bytes = 64}});
  scene.follow();
  Random random(seed_from_environment(2));
  std::map<std::uint64_t, std::string> model;
  for (int round = 0; round < 60; ++round) {
    const std::uint64_t writes = random.below(10) == 0 ? 5'000 : random.below(200);
    for (std::uint64_t i = 0; i < writes; ++i) {
      const std::uint64_t number = random.below(2'000);
      if (random.below(3) == 0) {
        scene.erase(scattered_key(number));
        model.erase(number);
      } else {
        model[number] = "value" + std::to_string(random.below(1'000'000));
        scene.put(scattered_key(number), model[number]);
      }
    }
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t number = random.below(2'000);
      const auto expected = model.find(number);
      const auto found = scene.get(scattered_key(number));
      ASSERT_EQ(found.has_value(), expected != model.end());
      if (found) {
        ASSERT_EQ(*found, expected->second);
      }
    }
  }
  EXPECT_GT(scene.reader().feed()->counts().behind, 1u);
}

// Each write is visible immediately, whatever it moves, and the cache follows.
TEST(OneSidedCache, WhatIsWrittenIsSeenAtOnce) {
  CacheScene scene({});
  scene.fill(2'000);
  Random random(seed_from_environment(1));
  scene.waits_per_get(2'000, 4'000, random);
  for (int i = 0; i < 6'000; ++i) {
    const std::uint64_t number = random.below(3'000);  // new keys too: nodes split
    const std::string value = "new" + std::to_string(i);
    scene.put(scattered_key(number), value);
    ASSERT_EQ(scene.get(scattered_key(number)), value);
  }
  for (std::uint64_t i = 0; i < 3'000; ++i)
    scene.put(scattered_key(i), "value" + std::to_string(i));
  scene.waits_per_get(3'000, 9'000, random);
  EXPECT_LE(scene.waits_per_get(3'000, 2'000, random), 1.1);
}

// --- as a client of a real node ------------------------------------------------------------------

class OneSidedCacheNode : public NodeFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  OneSidedCacheNode() {
    reach_by(GetParam());
    config_.node.one_sided = true;
    config_.node.leases = kLeasesThatLast;
  }
};

TEST_P(OneSidedCacheNode, AWarmGetWaitsAsSeldomAsItCan) {
  start();
  Store asking = connect();
  Map asked = *asking.create_map("m");
  for (std::uint64_t i = 0; i < kNumberedKeys; ++i) {
    ASSERT_TRUE(asked.put(numbered_key(i), "value" + std::to_string(i)));
  }
  const auto waits = [&](const StoreOptions& options) {
    Store reading = *Store::connect(address(), options);
    Map read = *reading.open_map("m");
    Random random(seed_from_environment(1));
    const auto gets = [&] {
      for (int i = 0; i < kWarmGets; ++i) {
        const std::uint64_t number = random.below(kNumberedKeys);
        const auto found = read.get(numbered_key(number));
        ASSERT_TRUE(found && *found);
        ASSERT_EQ((*found)->value, "value" + std::to_string(number));
      }
    };
    const auto trips = [&] { return client::StoreImpl::of(reading).read_traffic().round_trips; };
    gets();
    const std::uint64_t before = trips();
    gets();
    return static_cast<double>(trips() - before) / kWarmGets;
  };
  const bool in_order = std::string(GetParam()) == "shm";
  EXPECT_LE(waits({.access = Access::one_sided}), in_order ? 1.05 : 3.05);
  EXPECT_GE(waits({.access = Access::one_sided, .cache_bytes = 0}), 5.0);
}

// Two maps by one thread, of which each follows its own feed, by one pair for READs; over shm.
TEST_P(OneSidedCacheNode, AClientFollowsTheFeedsOfItsMaps) {
  start();
  Store asking = connect();
  Store reading = *Store::connect(address(), {.access = Access::one_sided});
  constexpr std::uint64_t kKeys = 500;
  std::map<std::string, Map> asked;
  std::map<std::string, Map> read;
  std::map<std::string, std::map<std::string, std::string>> model;
  Random random(seed_from_environment(3));
  const auto write = [&](const std::string& name, std::uint64_t number) {
    const std::string value = "value" + std::to_string(random.below(1'000'000));
    ASSERT_TRUE(asked.at(name).put(numbered_key(number), value));
    model[name][numbered_key(number)] = value;
  };
  for (const char* name : {"a", "b"}) {
    asked.emplace(name, *asking.create_map(name, {.node_bytes = 512, .log_bytes = 64}));
    for (std::uint64_t i = 0; i < kKeys; ++i) write(name, i);
    read.emplace(name, *reading.open_map(name));
  }
  const auto asides = [&] { return client::StoreImpl::of(reading).read_traffic().asides; };
  // Until both feeds were read repeatedly, however long each read takes here.
  for (int i = 0; i < 2'000 || asides() < 20; ++i) {
    const std::string name = i % 3 == 0 ? "a" : "b";
    write(name, random.below(kKeys));
    const std::string key = numbered_key(random.below(kKeys));
    const auto found = read.at(name).get(key);
    ASSERT_TRUE(found && *found) << i;
    ASSERT_EQ((*found)->value, model[name][key]);
  }
  for (const wire::SampledObject& map : node::numbers_and_samples_of(*node_).sampled.objects) {
    if (map.name != "a" && map.name != "b") continue;
    EXPECT_EQ(wire::sample_value(map, "feed_followers"), 1u);
    EXPECT_GT(wire::sample_value(map, "feed_entries"), 10u);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, OneSidedCacheNode, ::testing::Values("shm", "roce"),
                         [](const auto& way) { return std::string(way.param); });

}  // namespace
}  // namespace espalier::test

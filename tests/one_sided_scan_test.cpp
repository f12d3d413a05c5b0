// SPDX-License-Identifier: Apache-2.0
// Scans with read-ahead of leaves: how often they wait, how much they read, and that they deliver
// the state of one moment despite concurrent writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <string>

#include "tests/support/cache_scene.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kScannedKeys = 20'000;

using KeptItems = std::map<std::string, std::string>;

KeptItems filled(CacheScene& scene, const CacheSetting& setting) {
  KeptItems model;
  scene.fill(kScannedKeys);
  for (std::uint64_t i = 0; i < kScannedKeys; ++i)
    model[setting.key(i)] = "value" + std::to_string(i);
  return model;
}

CacheScene::Items expected(const KeptItems& model, const Request& request) {
  const auto at = [&](std::string_view key, KeptItems::const_iterator otherwise) {
    return key.empty() ? otherwise : model.lower_bound(std::string(key));
  };
  CacheScene::Items items(at(request.key, model.begin()), at(request.high, model.end()));
  if (request.op == Op::scan_reverse) std::ranges::reverse(items);
  if (request.limit != 0 && items.size() > request.limit) items.resize(request.limit);
  return items;
}

struct ScanCost {
  double trips_per_leaf = 0;
  double leaves = 0;  // that the scan went over
  double bytes_per_leaf = 0;
};

/// What a scan of everything costs, the first or a later one.
ScanCost cost_of_a_scan(CacheSetting setting, std::uint32_t leaves_ahead, bool warm,
                        Op op = Op::scan) {
  setting.leaves_ahead = leaves_ahead;
  CacheScene scene(setting);
  const KeptItems model = filled(scene, setting);
  Request request;
  request.op = op;
  const auto wanted = expected(model, request);
  if (warm) {
    EXPECT_EQ(scene.scan(request), wanted);
  }
  const tree::WalkTraffic before = scene.reader().traffic();
  EXPECT_EQ(scene.scan(request), wanted);
  const tree::WalkTraffic& after = scene.reader().traffic();
  const auto leaves = static_cast<double>(scene.map().leaves.load());
  EXPECT_EQ(scene.reader().restarts(), 0u);
  const ScanCost cost{static_cast<double>(after.round_trips - before.round_trips) / leaves, leaves,
                      static_cast<double>(after.bytes - before.bytes) / leaves};
  std::printf("%u ahead, %s, %s: %.3f waits for a leaf\n", leaves_ahead,
              setting.in_order ? "in order" : "not in order", warm ? "known" : "first time",
              cost.trips_per_leaf);
  return cost;
}

TEST(OneSidedScan, LeavesComeSeveralAtATime) {
  const CacheSetting in_order;
  const CacheSetting elsewhere{.in_order = false};
  const ScanCost one_by_one = cost_of_a_scan(in_order, 0, true);
  const ScanCost ahead = cost_of_a_scan(in_order, 8, true);
  ASSERT_GT(ahead.leaves, 400);
  // One for each leaf, and its proof with it; nine leaves by one.
  EXPECT_LE(one_by_one.trips_per_leaf, 1.01);
  EXPECT_LE(ahead.trips_per_leaf, 0.14);
  // Each leaf is brought once.
  EXPECT_LE(ahead.bytes_per_leaf, one_by_one.bytes_per_leaf * 1.05);
  // Elsewhere the proofs are another wait.
  EXPECT_LE(cost_of_a_scan(elsewhere, 0, true).trips_per_leaf, 2.01);
  EXPECT_LE(cost_of_a_scan(elsewhere, 8, true).trips_per_leaf, 0.28);
}

TEST(OneSidedScan, WhoComesForTheFirstTimeLearnsWhatFollows) {
  // For each of about twenty interior nodes, some waits are for the descent to it.
  EXPECT_LE(cost_of_a_scan({}, 8, false).trips_per_leaf, 0.45);
  EXPECT_GE(cost_of_a_scan({}, 0, false).trips_per_leaf, 1.9);
  EXPECT_LE(cost_of_a_scan({.key = numbered_key}, 8, false).trips_per_leaf, 0.55);
  EXPECT_LE(cost_of_a_scan({.in_order = false}, 8, false).trips_per_leaf, 0.65);
  const MapOptions large{.node_bytes = 4096, .log_bytes = 256};
  EXPECT_LE(cost_of_a_scan({.map = large}, 8, false).trips_per_leaf, 0.3);
  EXPECT_GE(cost_of_a_scan({.map = large}, 0, false).trips_per_leaf, 1.9);
}

TEST(OneSidedScan, DescendingToo) {
  EXPECT_LE(cost_of_a_scan({}, 8, true, Op::scan_reverse).trips_per_leaf, 0.14);
  EXPECT_GE(cost_of_a_scan({}, 0, true, Op::scan_reverse).trips_per_leaf, 0.99);
  EXPECT_LE(cost_of_a_scan({}, 8, false, Op::scan_reverse).trips_per_leaf, 0.45);
}

// A reader without room for nodes goes from leaf to leaf, and does not repeatedly look for what it
// cannot keep.
TEST(OneSidedScan, WithoutMemoryItGoesFromLeafToLeaf) {
  const ScanCost without = cost_of_a_scan({.cache_bytes = 1}, 0, false);
  EXPECT_LE(cost_of_a_scan({.cache_bytes = 1}, 8, false).trips_per_leaf,
            without.trips_per_leaf + 0.1);
  EXPECT_GT(cost_of_a_scan({.cache_bytes = 0}, 8, false).trips_per_leaf, 1.9);
}

// The end of the range and the limit of items are known: little is read in excess.
TEST(OneSidedScan, NotMuchIsBroughtInVain) {
  for (const bool in_order : {true, false}) {
    const CacheSetting setting{.in_order = in_order};
    CacheScene scene(setting);
    const KeptItems model = filled(scene, setting);
    Request everything;
    everything.op = Op::scan;
    scene.scan(everything);
    Random random(seed_from_environment(11));
    const place::AheadCounts before = scene.reader().ahead();
    std::uint64_t scans = 0;
    for (; scans < 200; ++scans) {
      const auto from = std::next(model.begin(), static_cast<long>(random.below(kScannedKeys / 2)));
      const auto to = std::next(from, static_cast<long>(50 + random.below(1'000)));
      Request request;
      request.op = random.below(2) == 0 ? Op::scan : Op::scan_reverse;
      request.key = from->first;
      request.high = to->first;
      if (random.below(2) == 0) request.limit = static_cast<std::uint32_t>(1 + random.below(300));
      ASSERT_EQ(scene.scan(request), expected(model, request));
    }
    const std::uint64_t asked = scene.reader().ahead().asked - before.asked;
    const std::uint64_t taken = scene.reader().ahead().taken - before.taken;
    EXPECT_GT(taken, scans);
    EXPECT_LE(asked - taken, 2 * scans) << asked << " asked, " << taken << " taken";
  }
}

// A client that ends its scan after some items has had few leaves brought, without a limit.
TEST(OneSidedScan, AScanThatEndsEarlyHasBroughtLittle) {
  CacheScene scene({});
  scene.fill(kScannedKeys);
  Request request;
  request.op = Op::scan;
  scene.scan(request);
  const std::uint64_t before = scene.reader().ahead().asked;
  EXPECT_GE(scene.scan(request, 5).size(), 5u);
  EXPECT_LE(scene.reader().ahead().asked - before, 2u);
}

// Between any two pieces leaves are written, split and emptied: what was brought before and what is
// brought after are of one moment, that of the scan's version.
TEST(OneSidedScan, WhatItDeliversIsOfItsMoment) {
  for (const bool in_order : {true, false}) {
    CacheScene scene({.in_order = in_order,
                      .cache_bytes = 1 << 20,
                      .holds_memory = true,
                      .map = {.node_bytes = 512, .log_bytes = 64}});
    Random random(seed_from_environment(5));
    KeptItems model;
    const auto write = [&] {
      const std::string key = numbered_key(random.below(3'000));
      if (random.below(3) == 0) {
        scene.erase(key);
        model.erase(key);
      } else {
        model[key] = "value" + std::to_string(random.below(1'000'000));
        scene.put(key, model[key]);
      }
    };
    for (int i = 0; i < 6'000; ++i) write();
    for (int round = 0; round < 30; ++round) {
      Request request;
      request.op = random.below(2) == 0 ? Op::scan : Op::scan_reverse;
      const std::string low = numbered_key(random.below(1'500));
      const std::string high = numbered_key(1'500 + random.below(1'500));
      if (random.below(2) == 0) request.key = low;
      if (random.below(2) == 0) request.high = high;
      if (random.below(3) == 0) request.limit = static_cast<std::uint32_t>(1 + random.below(500));
      const auto wanted = expected(model, request);
      scene.meanwhile = [&] {
        for (std::uint64_t i = random.below(60); i != 0; --i) write();
      };
      ASSERT_EQ(scene.scan(request), wanted) << "round " << round;
      scene.meanwhile = nullptr;
    }
    EXPECT_GT(scene.reader().ahead().taken, 100u);
  }
}

}  // namespace
}  // namespace espalier::test

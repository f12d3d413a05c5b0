// SPDX-License-Identifier: Apache-2.0
// Walks over all items: each once, from any key on, while the map grows and items move, come and
// go.
#include "kinds/hash/hash_walk.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/barrier.hpp"
#include "base/random.hpp"
#include "kinds/hash/testing/hash_fixture.hpp"
#include "kinds/hash/walk_items.hpp"

namespace espalier::hash {
namespace {

using Items = std::vector<std::pair<std::string, std::string>>;

/// Slots of a chain that is as long as may be.
constexpr std::size_t kInOneBin = kChainMax * (kSlotsPerBucket - 1) + 1;

std::string numbered(std::uint64_t i) { return "item" + std::to_string(i); }

/// Items of a whole walk that ends after every `together` of them and begins anew from the last.
Items walked(HashFixture& f, std::size_t together) {
  Items all;
  std::string after;
  for (bool more = true; more;) {
    HashWalk walk(*f.map, after);
    std::size_t left = together;
    const auto take = [&](const WalkedItem& item) {
      all.emplace_back(item.key, item.value);
      return --left != 0;
    };
    more = false;
    while (!walk.at_end() && !more) more = !walk.step(f.thread, take);
    if (more) after = all.back().first;
  }
  return all;
}

TEST(HashWalk, DeliversEachItemOnceFromWhereverItBegins) {
  base::Random random(base::seed_from_environment(17));
  for (const std::uint32_t partitions : {1u, 4u}) {
    for (const bool versions : {true, false}) {
      HashFixture f({.partitions = partitions, .versions = versions});
      EXPECT_TRUE(walked(f, 1).empty());
      std::map<std::string, std::string> model;
      for (int i = 0; i < 20'000; ++i) {
        const std::string key = numbered(random.below(8000));
        if (random.below(4) == 0) {
          model.erase(key);
          ASSERT_TRUE(f.map->erase(f.thread, key));
        } else {
          model[key] = std::string(random.below(i % 50 == 0 ? 3000 : 40), 'v');
          f.put(key, model[key]);
        }
      }
      EXPECT_GT(f.map->all_numbers().splits, 0u);
      for (const std::size_t together : {1, 7, 100'000}) {
        const Items all = walked(f, together);
        const std::map<std::string, std::string> once(all.begin(), all.end());
        EXPECT_EQ(all.size(), model.size());
        EXPECT_EQ(once, model);
      }
    }
  }
}

// What an attacker makes of a map whose seed it knows.
TEST(HashWalk, GoesOnAmongManyItemsOfOneBin) {
  HashFixture f({.partitions = 1, .versions = true, .seed = HashSeed{5, 7}});
  std::set<std::string> model;
  for (const std::string& key : keys_of_one_bin(*f.map, kInOneBin, 11)) {
    f.put(key, "v");
    model.insert(key);
  }
  EXPECT_FALSE(f.map->put(f.thread, keys_of_one_bin(*f.map, kInOneBin + 1, 11).back(), "v"));
  HashWalk walk(*f.map);
  std::size_t steps = 0;
  std::size_t most = 0;
  for (; !walk.at_end(); ++steps) {
    std::size_t items = 0;
    const auto take = [&](const WalkedItem&) { return ++items != 0; };
    static_cast<void>(walk.step(f.thread, take));
    most = std::max(most, items);
  }
  EXPECT_EQ(most, kInOneBin);  // no step has more to do, whatever the keys
  EXPECT_EQ(steps, kBinsPerSegment);
  for (const std::size_t together : {std::size_t{1}, std::size_t{3}, kInOneBin}) {
    const Items all = walked(f, together);
    std::set<std::string> once;
    for (const auto& item : all) once.insert(item.first);
    EXPECT_EQ(all.size(), model.size());
    EXPECT_EQ(once, model);
  }
}

// Between two steps the map grows as much as it can: what was there all the time comes once.
TEST(HashWalk, GrowthBetweenStepsNeitherRepeatsNorLosesItems) {
  base::Random random(base::seed_from_environment(23));
  HashFixture f({.partitions = 2}, std::uint64_t{256} << 20);
  constexpr std::uint64_t kThere = 1500;
  for (std::uint64_t i = 0; i < kThere; ++i) f.put(numbered(i), "v");
  std::map<std::string, int> seen;
  HashWalk walk(*f.map);
  std::uint64_t more = 0;
  const auto take = [&](const WalkedItem& item) {
    ++seen[std::string(item.key)];
    return random.below(5) != 0;
  };
  while (!walk.at_end()) {
    static_cast<void>(walk.step(f.thread, take));
    // No further than this: each bin takes as many steps as there are segments by then.
    const std::uint64_t grown = std::min<std::uint64_t>(more + random.below(150), 30'000);
    for (; more < grown; ++more) f.put("more" + std::to_string(more), "m");
  }
  EXPECT_GT(f.map->all_numbers().splits, 10u);
  for (std::uint64_t i = 0; i < kThere; ++i) EXPECT_EQ(seen[numbered(i)], 1) << i;
  for (const auto& [key, times] : seen) EXPECT_EQ(times, 1) << key;
  EXPECT_EQ(f.faults(), "");
}

TEST(HashWalkConcurrency, ItemsThatStayComeOnceWhileOthersMakeTheMapGrow) {
  HashFixture f({.partitions = 2}, std::uint64_t{256} << 20);
  constexpr std::uint64_t kThere = 1000;
  const std::uint64_t walks = base::kThreadSanitizer ? 3 : 30;
  for (std::uint64_t i = 0; i < kThere; ++i) f.put(numbered(i), "v");
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (int w = 0; w < 2; ++w) {
    writers.emplace_back([&, w] {
      HashThread thread = f.another_thread();
      // Items of the walk are replaced, others come and go, so that slots and links move.
      for (std::uint64_t i = 0; !stop.load(); ++i) {
        const std::string other = std::to_string(w) + "other" + std::to_string(i % 20'000);
        ASSERT_TRUE(f.map->put(thread, other, "o"));
        ASSERT_TRUE(f.map->put(thread, numbered(i % kThere), "w"));
        if (i % 3 == 0) {
          ASSERT_TRUE(f.map->erase(thread, other));
        }
      }
    });
  }
  for (std::uint64_t round = 0; round < walks; ++round) {
    std::map<std::string, int> seen;
    HashWalk walk(*f.map);
    const auto take = [&](const WalkedItem& item) {
      EXPECT_TRUE(item.value == "v" || item.value == "w" || item.value == "o");
      ++seen[std::string(item.key)];
      return true;
    };
    while (!walk.at_end()) static_cast<void>(walk.step(f.thread, take));
    for (std::uint64_t i = 0; i < kThere; ++i) EXPECT_EQ(seen[numbered(i)], 1) << i;
    EXPECT_TRUE(std::ranges::all_of(seen, [](const auto& one) { return one.second == 1; }));
  }
  stop.store(true);
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(f.faults(), "");
}

TEST(WalkItems, WhatIsWrittenIsReadAndNothingElse) {
  std::string bytes;
  append_item(bytes, "k", "value", 3);
  append_item(bytes, std::string(65535, 'k'), "", 4);
  append_item(bytes, "long", std::string(kWalkedValueMax + 1, 'v'), 5);
  std::string_view left = bytes;
  ItemRead item;
  ASSERT_TRUE(take_item(left, item));
  EXPECT_EQ(item.key, "k");
  EXPECT_EQ(item.value, "value");
  EXPECT_EQ(item.head.version, 3u);
  ASSERT_TRUE(take_item(left, item));
  EXPECT_EQ(item.key.size(), 65535u);
  ASSERT_TRUE(take_item(left, item));
  EXPECT_EQ(item.head.left_out, 1);
  EXPECT_TRUE(item.value.empty());
  EXPECT_FALSE(take_item(left, item));
  for (std::size_t bytes_left = 0; bytes_left < sizeof(ItemOfWalk) + 6; ++bytes_left) {
    std::string_view cut = std::string_view(bytes).substr(0, bytes_left);
    EXPECT_FALSE(take_item(cut, item)) << bytes_left;
    EXPECT_EQ(cut.size(), bytes_left);
  }
  std::string without_key(base::bytes_of(ItemOfWalk{1, 0, 0, 0}));
  left = without_key;
  EXPECT_FALSE(take_item(left, item));
}

}  // namespace
}  // namespace espalier::hash

// SPDX-License-Identifier: Apache-2.0
// What a hash map does, held against std::unordered_map; in full stores, and without memory.
#include "kinds/hash/hash_map.hpp"

#include <gtest/gtest.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "base/bytes.hpp"
#include "base/random.hpp"
#include "catalog/samples.hpp"
#include "kinds/hash/testing/hash_fixture.hpp"

namespace espalier::hash {
namespace {

using Model = std::unordered_map<std::string, std::string>;

TEST(HashMap, DoesWhatItsCallsSay) {
  for (const bool versions : {true, false}) {
    HashFixture f({.partitions = 4, .versions = versions});
    HashMap& map = *f.map;
    EXPECT_EQ(f.get("a"), std::nullopt);
    EXPECT_FALSE(map.update(f.thread, "a", "1")->applied);
    EXPECT_TRUE(map.insert(f.thread, "a", "1")->applied);
    EXPECT_FALSE(map.insert(f.thread, "a", "2")->applied);
    EXPECT_EQ(f.get("a"), "1");
    const HashWritten put = f.put("a", "3");
    EXPECT_TRUE(put.applied && put.existed);
    EXPECT_EQ(put.version != 0, versions);
    EXPECT_EQ(f.get("a"), "3");
    EXPECT_TRUE(map.erase(f.thread, "a")->applied);
    EXPECT_FALSE(map.erase(f.thread, "a")->applied);
    EXPECT_EQ(f.get("a"), std::nullopt);
    f.put("empty", "");
    EXPECT_EQ(f.get("empty"), "");
    EXPECT_EQ(*map.add(f.thread, "n", 5), 5u);
    EXPECT_EQ(*map.add(f.thread, "n", ~std::uint64_t{0}), 4u);
    EXPECT_EQ(map.add(f.thread, "empty", 1).error(), (Error{Code::invalid_argument, 0, 0}));
    EXPECT_EQ(f.faults(), "");
  }
}

TEST(HashMap, ComparesAndSets) {
  HashFixture f;
  HashMap& map = *f.map;
  EXPECT_TRUE(map.compare_and_set(f.thread, "k", std::nullopt, "1"));
  EXPECT_EQ(map.compare_and_set(f.thread, "k", std::nullopt, "2").error().code,
            Code::condition_failed);
  EXPECT_EQ(map.compare_and_set(f.thread, "k", "0", "2").error().code, Code::condition_failed);
  const auto written = map.compare_and_set(f.thread, "k", "1", "2");
  ASSERT_TRUE(written);
  const Condition same{ConditionKind::version, written->version, {}};
  EXPECT_TRUE(map.write(f.thread, WriteOp::put, "k", "3", same));
  EXPECT_EQ(map.write(f.thread, WriteOp::put, "k", "4", same).error().code, Code::condition_failed);
  EXPECT_TRUE(map.compare_and_set(f.thread, "k", "3", std::nullopt));
  EXPECT_EQ(f.get("k"), std::nullopt);
  EXPECT_EQ(f.faults(), "");
}

TEST(HashMap, TakesKeysAndValuesOfAllLengths) {
  HashFixture f;
  for (const std::size_t key_bytes : {1u, 15u, 16u, 17u, 1000u, 1008u, 1009u, 65535u}) {
    for (const std::size_t value_bytes : {0u, 1u, 48u, 1000u, 5000u, 1u << 20}) {
      const std::string key(key_bytes, 'k');
      const std::string value(value_bytes, 'v');
      f.put(key, value);
      ASSERT_EQ(f.get(key), value) << key_bytes << " " << value_bytes;
    }
  }
  const std::string longest(kValueBytesMax, 'x');
  f.put("k", longest);
  EXPECT_EQ(f.get("k"), longest);
  EXPECT_EQ(f.map->put(f.thread, "k", longest + "y").error().code, Code::value_too_long);
  EXPECT_EQ(f.map->put(f.thread, "", "v").error().code, Code::key_too_long);
  EXPECT_EQ(f.map->get(f.thread, std::string(65536, 'k')).error().code, Code::key_too_long);
  EXPECT_EQ(f.faults(), "");
}

TEST(HashMap, GrowsAndGivesRecordsBack) {
  for (const bool versions : {true, false}) {
    HashFixture f({.partitions = 2, .versions = versions});
    constexpr int kKeys = 60'000;
    for (int i = 0; i < kKeys; ++i) {
      f.put("key" + std::to_string(i), std::to_string(i));
      if (i % 10'000 == 0) {
        ASSERT_EQ(f.faults(), "");
      }
    }
    ASSERT_EQ(f.faults(), "");
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_EQ(f.get("key" + std::to_string(i)), std::to_string(i));
      ASSERT_EQ(f.get("kay" + std::to_string(i)), std::nullopt);
    }
    const std::uint64_t pages = f.map->records().numbers().pages;
    for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(f.map->erase(f.thread, "key" + std::to_string(i)));
    f.map->give_back(f.thread);
    EXPECT_EQ(f.map->numbers().entries, 0u);
    EXPECT_LT(f.map->records().numbers().pages, 4u);
    EXPECT_GT(pages, 50u);
    EXPECT_EQ(f.faults(), "");
  }
}

/// A map and its model, and some snapshots with what they should hold.
class World {
 public:
  World(const HashOptions& options, std::uint64_t seed, std::uint64_t bytes_max)
      : f(options, bytes_max), random(seed) {}
  ~World() {
    for (auto& [snapshot, contents] : snapshots_) f.map->drop(snapshot);
  }

  void step() {
    const std::string key = random_key();
    const std::string value = random_value();
    const auto found = model.find(key);
    const bool existed = found != model.end();
    switch (random.below(8)) {
      case 0: follow(f.map->insert(f.thread, key, value), existed, !existed, key, value); break;
      case 1: follow(f.map->update(f.thread, key, value), existed, existed, key, value); break;
      case 2:
      case 3: follow(f.map->erase(f.thread, key), existed, existed, key, std::nullopt); break;
      case 4: {
        const auto change = [&](std::optional<std::string_view> now) {
          EXPECT_EQ(now.has_value(), existed);
          return now ? std::optional<std::string>(std::string(now->substr(0, 40)) + "+") : value;
        };
        const std::string next = existed ? found->second.substr(0, 40) + "+" : value;
        follow(f.map->modify(f.thread, key, change), existed, true, key, next);
        break;
      }
      case 5: {
        const auto seen = f.map->get(f.thread, key);
        ASSERT_TRUE(seen);
        EXPECT_EQ(*seen, existed ? std::optional(found->second) : std::nullopt);
        break;
      }
      default: follow(f.map->put(f.thread, key, value), existed, true, key, value); break;
    }
  }
  void look_at_all() {
    ASSERT_EQ(f.faults(), "");
    for (const auto& [key, value] : model) ASSERT_EQ(f.get(key), value);
    for (const auto& [snapshot, contents] : snapshots_) {
      HashReader reader(*f.map, f.thread, snapshot);
      for (int i = 0; i < 200; ++i) {
        const std::string key = random_key();
        const HashAnswer answer = reader.get(key);
        const std::string value(answer.value);
        if (reader.expired()) break;
        const auto expected = contents.find(key);
        ASSERT_EQ(answer.found, expected != contents.end());
        if (answer.found) {
          ASSERT_EQ(value, expected->second);
        }
      }
    }
    ASSERT_EQ(f.map->numbers().entries, model.size());
  }
  void hold_or_drop() {
    if (snapshots_.size() < 3 && random.below(2) == 0) {
      snapshots_.emplace_back(f.map->hold(f.thread).value(), model);
    } else if (!snapshots_.empty()) {
      const std::size_t which = random.below(snapshots_.size());
      f.map->drop(snapshots_[which].first);
      snapshots_.erase(snapshots_.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }

  HashFixture f;
  base::Random random;
  Model model;
  std::uint64_t refused = 0;

 private:
  std::string random_key() {
    std::string key = std::to_string(random.below(random.below(4) == 0 ? 20 : 4000));
    if (random.below(200) == 0) key.resize(random.between(1, 3000), '.');
    return key;
  }
  std::string random_value() {
    const std::uint64_t kind = random.below(100);
    const std::uint64_t bytes = kind == 0 ? 20'000 : kind < 5 ? 2000 : 100;
    return std::string(random.below(bytes), static_cast<char>('a' + random.below(26)));
  }
  void follow(const Result<HashWritten>& written, bool existed, bool applied,
              const std::string& key, const std::optional<std::string>& value) {
    if (!written) {
      EXPECT_EQ(written.error().code, Code::out_of_memory);
      ++refused;
      return;
    }
    EXPECT_EQ(written->existed, existed);
    EXPECT_EQ(written->applied, applied);
    if (!applied) return;
    if (value) {
      model[key] = *value;
    } else {
      model.erase(key);
    }
  }

  std::vector<std::pair<HashSnapshot, Model>> snapshots_;
};

TEST(HashMap, DoesWhatAModelDoes) {
  const std::uint64_t seed = base::seed_from_environment(20);
  for (const bool versions : {true, false}) {
    for (const std::uint32_t partitions : {1u, 8u}) {
      World world({.partitions = partitions, .versions = versions}, seed + partitions,
                  std::uint64_t{128} << 20);
      for (int round = 0; round < 60; ++round) {
        for (int i = 0; i < 200; ++i) world.step();
        if (versions) world.hold_or_drop();
        world.look_at_all();
        if (testing::Test::HasFatalFailure()) return;
        if (round % 20 == 19) world.f.map->give_back(world.f.thread);
      }
      EXPECT_EQ(world.refused, 0u);
    }
  }
}

TEST(HashMap, DoesWhatAModelDoesInAFullStore) {
  const std::uint64_t seed = base::seed_from_environment(21);
  World world({.partitions = 2, .snapshot_bytes_max = 1 << 20}, seed, std::uint64_t{8} << 20);
  // Most of the memory goes to keys that stay.
  for (int i = 0; i < 14'000; ++i) {
    const std::string key = "stays" + std::to_string(i);
    if (!world.f.map->put(world.f.thread, key, std::string(200, 's'))) break;
    world.model[key] = std::string(200, 's');
  }
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 200; ++i) world.step();
    world.hold_or_drop();
    world.look_at_all();
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(world.refused, 0u);
}

TEST(HashMap, AFullStoreRefusesPutsAndTakesErases) {
  for (const bool versions : {true, false}) {
    HashFixture f({.partitions = 4, .versions = versions}, std::uint64_t{8} << 20);
    int stored = 0;
    Result<HashWritten> put = HashWritten{};
    for (; put; ++stored) {
      put = f.map->put(f.thread, "key" + std::to_string(stored), std::string(48, 'v'));
    }
    --stored;
    EXPECT_EQ(put.error().code, Code::out_of_memory);
    EXPECT_GT(stored, 10'000);
    EXPECT_EQ(f.get("key" + std::to_string(stored)), std::nullopt);
    ASSERT_EQ(f.faults(), "");
    for (int i = 0; i < stored; ++i) {
      const auto erased = f.map->erase(f.thread, "key" + std::to_string(i));
      ASSERT_TRUE(erased) << i;
      ASSERT_TRUE(erased->applied);
      if (i == 3000) {
        ASSERT_EQ(f.faults(), "");
      }
    }
    EXPECT_EQ(f.map->numbers().entries, 0u);
    EXPECT_TRUE(f.map->put(f.thread, "again", "v"));
    EXPECT_EQ(f.faults(), "");
  }
}

TEST(HashMap, AFullStoreRefillsItsReserve) {
  HashFixture f({.partitions = 4}, std::uint64_t{8} << 20);
  for (int i = 0; f.map->put(f.thread, "key" + std::to_string(i), "v"); ++i) {
  }
  EXPECT_TRUE(f.parts.refill_reserves());
  EXPECT_GT(f.map->spare_links(), 0u);
  EXPECT_TRUE(f.map->erase(f.thread, "key0"));
  EXPECT_EQ(f.faults(), "");
}

// Tiny pairs are of the class of version links: they must not take for good what erases need.
TEST(HashMap, AFullStoreTakesErasesAmongTinyPairs) {
  HashFixture f({.partitions = 4}, std::uint64_t{8} << 20);
  int stored = 0;
  while (f.map->put(f.thread, "key" + std::to_string(stored), std::string(900, 'v'))) ++stored;
  EXPECT_GT(stored, 1000);
  int tiny = 0;
  int refused = 0;
  const auto put_tiny = [&] {
    while (f.map->put(f.thread, "t" + std::to_string(tiny), "v")) ++tiny;
    ++refused;
  };
  put_tiny();
  for (int i = 0; i < stored; ++i) {
    const auto erased = f.map->erase(f.thread, "key" + std::to_string(i));
    ASSERT_TRUE(erased) << i << " after " << tiny << " tiny pairs";
    ASSERT_TRUE(erased->applied);
    put_tiny();
  }
  EXPECT_GT(refused, 1000);
  EXPECT_EQ(f.map->numbers().entries, static_cast<std::uint64_t>(tiny));
  EXPECT_EQ(f.faults(), "");
}

// Fails the n-th acquisition of memory, once and from then on, until there are no more.
TEST(HashMap, WithoutMemoryNothingChanges) {
  for (const bool for_good : {false, true}) {
    for (std::int64_t n = 0; n < 60; ++n) {
      HashFixture f({.partitions = 1}, std::uint64_t{64} << 20);
      Model model;
      if (for_good) {
        f.parts.pool.fail_from(n);
      } else {
        f.parts.pool.fail_after(n);
      }
      for (int i = 0; i < 3000; ++i) {
        const std::string key = "key" + std::to_string(i % 2000);
        const std::string value(i % 7 == 0 ? 1500 : 30, static_cast<char>('a' + i % 20));
        const auto written = f.map->put(f.thread, key, value);
        if (written) {
          model[key] = value;
        } else {
          ASSERT_EQ(written.error().code, Code::out_of_memory);
        }
      }
      if (!for_good) {
        EXPECT_EQ(model.size(), 2000u);  // it tries again
      }
      for (const auto& [key, value] : model) ASSERT_EQ(f.get(key), value);
      for (int i = 0; i < 500; ++i) {
        const std::string key = "key" + std::to_string(i);
        const auto erased = f.map->erase(f.thread, key);
        ASSERT_TRUE(erased);
        ASSERT_EQ(erased->applied, model.erase(key) == 1);
      }
      ASSERT_EQ(f.map->numbers().entries, model.size());
      const bool done = f.parts.pool.failure_pending();
      f.parts.pool.fail_after(-1);
      ASSERT_EQ(f.faults(), "");
      if (done) break;
    }
  }
}

TEST(HashMap, SnapshotsKeepWhatTheyNeedAndNoMore) {
  HashFixture f({.partitions = 1});
  f.put("k", "0");
  f.put("gone", "1");
  const HashSnapshot snapshot = f.map->hold(f.thread).value();
  for (int i = 0; i < 1000; ++i) f.put("k", std::to_string(i));
  ASSERT_TRUE(f.map->erase(f.thread, "gone"));
  f.put("new", "2");
  {
    HashReader reader(*f.map, f.thread, snapshot);
    EXPECT_EQ(reader.get("k").value, "0");
    EXPECT_EQ(reader.get("gone").value, "1");
    EXPECT_FALSE(reader.get("new").found);
  }
  EXPECT_LE(audit(*f.map).links, 3u);  // of 1000 changes of the key only the last
  EXPECT_EQ(f.faults(), "");
  f.map->drop(snapshot);
  f.map->give_back(f.thread);
  f.map->give_back(f.thread);
  EXPECT_EQ(audit(*f.map).links, 0u);
  EXPECT_EQ(f.map->records().numbers().records, 2u + f.map->spare_links());
  EXPECT_EQ(f.faults(), "");
}

TEST(HashMap, SnapshotsExpireWhenTheyHoldTooMuch) {
  HashFixture f({.partitions = 1, .snapshot_bytes_max = 100'000});
  for (int i = 0; i < 3000; ++i) f.put("key" + std::to_string(i), std::string(60, 'a'));
  const HashSnapshot snapshot = f.map->hold(f.thread).value();
  for (int i = 0; i < 3000; ++i) f.put("key" + std::to_string(i), std::string(60, 'b'));
  f.map->give_back(f.thread);
  f.map->give_back(f.thread);
  EXPECT_TRUE(snapshot->has_expired());
  f.map->drop(snapshot);
  EXPECT_EQ(audit(*f.map).links, 0u);
  EXPECT_EQ(f.faults(), "");
}

// Of 5000 changes of a key one old state is kept, and counts: the snapshot stays.
TEST(HashMap, SnapshotsCountAHotKeyOnce) {
  HashFixture f({.partitions = 1, .snapshot_bytes_max = 20'000});
  f.put("hot", "first");
  const HashSnapshot snapshot = f.map->hold(f.thread).value();
  for (int i = 0; i < 5000; ++i) f.put("hot", std::to_string(i));
  f.map->give_back(f.thread);
  EXPECT_FALSE(snapshot->has_expired());
  EXPECT_EQ(f.parts.reclaimer.snapshots().bytes, sizeof(VersionLink) + 32u);
  EXPECT_EQ(audit(*f.map).links, 1u);
  EXPECT_LE(f.map->retirement().entries().spare, 1u);
  EXPECT_EQ(f.faults(), "");
  f.map->drop(snapshot);
}

// Where versions are released late, links have entries before it shows that they are not needed.
TEST(HashMap, SnapshotsCountAHotKeyOnceWhereReleasesAreLate) {
  HashFixture f({.partitions = 1, .snapshot_bytes_max = 100'000});
  static std::uint64_t now = 0;
  f.map->clock().set_time([]() noexcept -> std::uint64_t { return now; });
  f.put("hot", "first");
  f.put("other", "first");
  const HashSnapshot snapshot = f.map->hold(f.thread).value();
  for (int round = 0; round < 500; ++round) {
    now += memory::ReleaseHold::kApartNs;
    const std::uint64_t hold = f.map->clock().hold();
    ASSERT_NE(hold, 0u);
    for (int i = 0; i < 10; ++i) {
      const std::string key = i % 2 == 0 ? "hot" : "other";
      WriteOutcome outcome;
      const auto begun = f.map->begin_write(f.thread, WriteOp::put, key, std::to_string(i),
                                            f.map->hash(key), outcome);
      ASSERT_TRUE(begun && outcome.applied);
    }
    (void)f.map->clock().end_hold(hold);
    f.put("hot", "again");
    f.put("other", "again");
    if (round % 50 == 0) f.map->give_back(f.thread);
    ASSERT_EQ(audit(*f.map).links, 2u);
  }
  f.map->give_back(f.thread);
  EXPECT_FALSE(snapshot->has_expired());
  EXPECT_LT(f.map->retirement().entries().spare, 20u);
  EXPECT_EQ(f.faults(), "");
  f.map->drop(snapshot);
  f.map->give_back(f.thread);
  f.map->give_back(f.thread);
  EXPECT_EQ(audit(*f.map).links, 0u);
  EXPECT_EQ(f.map->retirement().entries().spare, 0u);
  EXPECT_EQ(f.faults(), "");
}

TEST(HashMap, SnapshotsCountEachRecordThatTheyKeep) {
  HashFixture f({.partitions = 1});
  constexpr std::uint64_t kKeys = 50;
  constexpr std::uint64_t kRecord = 640;
  const auto put_all = [&](char of) {
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      f.put("key" + std::to_string(10 + i), std::string(600, of));
    }
  };
  put_all('a');
  std::vector<HashSnapshot> snapshots;
  for (const char of : {'b', 'c', 'd'}) {
    snapshots.push_back(f.map->hold(f.thread).value());
    put_all(of);
    f.map->give_back(f.thread);
    f.map->give_back(f.thread);
    EXPECT_EQ(f.parts.reclaimer.snapshots().bytes,
              snapshots.size() * kKeys * (kRecord + sizeof(VersionLink)));
  }
  EXPECT_EQ(f.faults(), "");
  for (const HashSnapshot snapshot : snapshots) f.map->drop(snapshot);
}

// One snapshot stays, of many that are taken and dropped: a chain has what these two need.
TEST(HashMap, ChainsAreAsLongAsSnapshotsAreHeld) {
  HashFixture f({.partitions = 1});
  f.put("k", "first");
  f.put("erased", "first");
  const HashSnapshot stays = f.map->hold(f.thread).value();
  for (int i = 0; i < 300; ++i) {
    f.put("k", std::to_string(i));
    f.put("erased", std::to_string(i));
    const HashSnapshot passing = f.map->hold(f.thread).value();
    f.put("k", "later");
    (void)f.map->erase(f.thread, "erased");
    ASSERT_LE(audit(*f.map).links, 6u);
    {
      HashReader reader(*f.map, f.thread, passing);
      ASSERT_EQ(reader.get("k").value, std::to_string(i));
      ASSERT_EQ(reader.get("erased").value, std::to_string(i));
    }
    f.map->drop(passing);
  }
  {
    HashReader reader(*f.map, f.thread, stays);
    EXPECT_EQ(reader.get("k").value, "first");
    EXPECT_EQ(reader.get("erased").value, "first");
  }
  f.put("k", "last");
  EXPECT_LE(audit(*f.map).links, 4u);
  f.map->drop(stays);
  f.map->give_back(f.thread);
  f.map->give_back(f.thread);
  EXPECT_EQ(audit(*f.map).links, 0u);
  EXPECT_EQ(f.faults(), "");
}

TEST(HashMap, IsAnObjectOfItsStore) {
  HashFixture f;
  f.put("a", "1");
  EXPECT_EQ(create_hash_map(f.parts.store, "map").error().code, Code::already_exists);
  EXPECT_EQ(create_hash_map(f.parts.store, "odd", {.partitions = 3}).error().code,
            Code::invalid_argument);
  EXPECT_EQ(f.map->numbers().entries, 1u);
  EXPECT_GT(f.map->numbers().memory_bytes, 16'384u);
  catalog::SampleList samples;
  f.map->add_samples(samples);
  EXPECT_EQ(samples.take().front().value, 1u);
  ASSERT_TRUE(f.parts.catalog.drop<HashMap>("map"));
  EXPECT_TRUE(f.map->is_dropped());
  f.map.reset();
  for (memory::SizeClass cls = 0; cls < memory::kClasses; ++cls) {
    EXPECT_EQ(f.parts.pool.stats(cls).in_use, 0u) << memory::class_bytes(cls);
  }
}

TEST(HashMap, GivesAllBackWhenItIsDroppedWithLongPairsAndSnapshots) {
  HashFixture f;
  for (int i = 0; i < 300; ++i) f.put("key" + std::to_string(i), std::string(20'000, 'a'));
  const HashSnapshot snapshot = f.map->hold(f.thread).value();
  for (int i = 0; i < 300; ++i) f.put("key" + std::to_string(i % 50), std::string(3000, 'b'));
  EXPECT_EQ(f.faults(), "");
  f.map->drop(snapshot);
  ASSERT_TRUE(f.parts.catalog.drop<HashMap>("map"));
  f.map.reset();
  f.thread.cache->flush();
  for (memory::SizeClass cls = 0; cls < memory::kClasses; ++cls) {
    EXPECT_EQ(f.parts.pool.stats(cls).in_use, 0u) << memory::class_bytes(cls);
  }
}

}  // namespace
}  // namespace espalier::hash

// SPDX-License-Identifier: Apache-2.0
// Threads that use one hash map, in this process and on a node: their histories are linearizable,
// by the versions of the writes, and, for short ones, by a search that ignores versions.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/hash_maps/hash_map_client.hpp"
#include "tests/hash_maps/hash_map_fixture.hpp"
#include "tests/support/history.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/version_replay.hpp"
#include "tests/support/wing_gong.hpp"

namespace espalier::test {
namespace {

class HashMapConcurrency : public HashMapOverEachWay {
 protected:
  /// By a thread for each handle.
  static History run(const std::vector<HashMap>& maps, std::uint64_t calls, std::uint64_t keys,
                     std::uint64_t seed) {
    Clock clock;
    std::vector<HashClient> clients;
    for (std::uint32_t i = 0; i < maps.size(); ++i) {
      clients.emplace_back(maps[i], i, seed, keys, clock);
    }
    {
      std::vector<std::jthread> working;
      for (HashClient& client : clients) {
        working.emplace_back([&client, calls] { client.work(calls); });
      }
    }
    History history;
    for (HashClient& client : clients) {
      EXPECT_EQ(client.unexpected, "");
      for (Operation& each : client.seen) {
        EXPECT_EQ(malformed(each).value_or(""), "");
        history.operations.push_back(std::move(each));
      }
    }
    return history;
  }
};

TEST_P(HashMapConcurrency, LongHistoriesAreLinearizableInTheOrderOfVersions) {
  const std::uint64_t seed = seed_from_environment(71);
  SCOPED_TRACE(seed_text(seed));
  auto map = store_->create_hash_map("h", {.partitions = 2});
  ASSERT_TRUE(map);
  const std::uint64_t calls = steps_or(scaled(is_embedded() ? 8000 : 1500));
  const History history = run({*map, *map, *map}, calls, 12, seed);
  EXPECT_EQ(replay_versions(history).value_or(""), "");
  EXPECT_EQ(audit("h"), std::vector<std::string>{});
}

TEST_P(HashMapConcurrency, ShortHistoriesHaveALinearization) {
  const std::uint64_t seed = seed_from_environment(72);
  SCOPED_TRACE(seed_text(seed));
  for (const bool versions : {true, false}) {
    const auto rounds = steps_or(scaled(is_embedded() ? 100 : 30));
    std::uint64_t unknown = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::string name = "h" + std::to_string(versions) + std::to_string(round);
      auto map = store_->create_hash_map(name, {.partitions = 1, .versions = versions});
      ASSERT_TRUE(map);
      const History history = run({*map, *map, *map}, 12, 3, seed + round);
      const CheckResult result = check_linearizable(history);
      ASSERT_NE(result.answer, Answer::no) << result.why;
      if (result.answer == Answer::unknown) ++unknown;
      ASSERT_EQ(audit(name), std::vector<std::string>{});
      ASSERT_TRUE(store_->drop_hash_map(name));
    }
    EXPECT_LE(unknown, rounds / 10);
  }
}

// Concurrent adds to one counter sum up, over each channel.
TEST_P(HashMapConcurrency, NothingThatWasAddedIsLost) {
  auto map = store_->create_hash_map("h");
  ASSERT_TRUE(map);
  const std::uint64_t calls = scaled(is_embedded() ? 5000 : 800);
  {
    std::vector<std::jthread> working;
    for (int i = 0; i < 3; ++i) {
      working.emplace_back([&, own = *map]() mutable {
        std::uint64_t last = 0;
        for (std::uint64_t done = 0; done < calls; ++done) {
          const auto sum = own.add("n", 1);
          ASSERT_TRUE(sum) << message(sum.error());
          ASSERT_GT(*sum, last);
          last = *sum;
        }
      });
    }
  }
  EXPECT_EQ(map->add("n", 0), 3 * calls);
  EXPECT_EQ(audit("h"), std::vector<std::string>{});
}

// Each value follows from the one before it, of a length at which it is compared for a while.
TEST_P(HashMapConcurrency, ComparedValuesAreNotOverwrittenMeanwhile) {
  const std::string rest(3000, '.');
  for (const bool versions : {true, false}) {
    const std::string name = versions ? "with" : "without";
    auto map = store_->create_hash_map(name, {.partitions = 1, .versions = versions});
    ASSERT_TRUE(map && map->put("k", "0" + rest));
    const std::uint64_t rises = scaled(is_embedded() ? 1000 : 200);
    {
      std::vector<std::jthread> working;
      for (int i = 0; i < 3; ++i) {
        working.emplace_back([&, own = *map]() mutable {
          for (std::uint64_t done = 0; done < rises;) {
            std::string now;
            ASSERT_TRUE(own.get("k", now).value());
            const std::string next = std::to_string(std::stoull(now) + 1) + rest;
            const auto set = own.compare_and_set("k", now, next);
            ASSERT_TRUE(set || set.error().code == Code::condition_failed);
            done += set ? 1 : 0;
          }
        });
      }
    }
    EXPECT_EQ((*map->get("k"))->value, std::to_string(3 * rises) + rest);
    EXPECT_EQ(audit(name), std::vector<std::string>{});
  }
}

/// Of a node whose clients come by rings, by READs of their own, and through a device.
class MixedHashMapConcurrency : public HashMapConcurrency {
 protected:
  void SetUp() override {
    HashMapConcurrency::SetUp();
    const auto connected = [](const std::string& address, Access access) {
      auto store = Store::connect(address, {.access = access});
      EXPECT_TRUE(store) << message(store.error());
      return std::move(*store);
    };
    by_rings_.emplace(connected("unix:" + socket(), Access::rpc));
    by_reads_.emplace(connected(config_.node.fabric, Access::one_sided));
  }
  /// One for each place.
  std::vector<HashMap> make(const std::string& name, std::uint32_t partitions) {
    std::vector<HashMap> maps;
    maps.push_back(by_rings_->create_hash_map(name, {.partitions = partitions}).value());
    maps.push_back(by_reads_->open_hash_map(name).value());
    maps.push_back(store_->open_hash_map(name).value());
    return maps;
  }

  std::optional<Store> by_rings_;
  std::optional<Store> by_reads_;
};

TEST_P(MixedHashMapConcurrency, HistoriesOfAllPlacesAreLinearizable) {
  const std::uint64_t seed = seed_from_environment(73);
  SCOPED_TRACE(seed_text(seed));
  const History whole = run(make("long", 2), steps_or(scaled(600)), 12, seed);
  EXPECT_EQ(replay_versions(whole).value_or(""), "");
  EXPECT_EQ(audit("long"), std::vector<std::string>{});
  const auto rounds = steps_or(scaled(12));
  std::uint64_t unknown = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::string name = "h" + std::to_string(round);
    const CheckResult result = check_linearizable(run(make(name, 1), 12, 3, seed + round));
    ASSERT_NE(result.answer, Answer::no) << result.why;
    if (result.answer == Answer::unknown) ++unknown;
    ASSERT_TRUE(by_rings_->drop_hash_map(name));
  }
  EXPECT_LE(unknown, 1 + rounds / 10);
}

INSTANTIATE_TEST_SUITE_P(Places, MixedHashMapConcurrency, ::testing::Values("device"), way_name);

INSTANTIATE_TEST_SUITE_P(Ways, HashMapConcurrency,
                         ::testing::Values("embedded", "shm", "shm_one_sided"), way_name);

}  // namespace
}  // namespace espalier::test

// SPDX-License-Identifier: Apache-2.0
// Threads that share a connection to a node, with both sides sleeping and being woken.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/node_fixture.hpp"
#include "tests/support/raw_client.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {
namespace {

class NodeConcurrencyTest : public NodeOverEachWay {
 protected:
  // A thread that ends leaves nothing behind; a living one keeps its session's descriptors.
  template <class Body>
  static void on_a_thread(Body body) {
    std::thread(body).join();
  }
};

/// Answers to gets of one thread, which must be of its own keys.
struct OwnAnswers final : Handler {
  void done(const Completion& completion) override {
    if (!completion.ok || !completion.found || completion.value != values[completion.tag]) ++wrong;
    ++completed;
  }
  std::vector<std::string> values;
  std::uint64_t wrong = 0;
  std::uint64_t completed = 0;
};

INSTANTIATE_TEST_SUITE_P(By, NodeConcurrencyTest, ::testing::ValuesIn(kWays), way_name);

TEST_P(NodeConcurrencyTest, ThreadsThatShareAConnectionGetTheirOwnAnswers) {
  start();
  on_a_thread([&] {
    Store store = connect();
    Map map = *store.open_map("default");
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t) {
      threads.emplace_back([&, t] {
        Random random(static_cast<std::uint64_t>(t));
        auto pipeline = Pipeline::open(map, 32);
        ASSERT_TRUE(pipeline) << message(pipeline.error());
        OwnAnswers answers;
        std::vector<std::string> keys;
        for (int i = 0; i < 100; ++i) {
          keys.push_back("t" + std::to_string(t) + "-" + std::to_string(i));
          answers.values.emplace_back(random.below(400), static_cast<char>('a' + t));
          ASSERT_TRUE(map.put(keys.back(), answers.values.back()));
        }
        std::vector<Request> gets;
        for (std::uint64_t round = 0; round < scaled(20'000); ++round) {
          Request get;
          get.op = Op::get;
          get.tag = random.below(keys.size());
          get.key = keys[get.tag];
          gets.push_back(get);
        }
        pipeline->run(gets, answers);
        EXPECT_EQ(answers.completed, gets.size());
        EXPECT_EQ(answers.wrong, 0u);
        for (std::uint64_t i = 0; i < scaled(1'000); ++i) {
          const std::size_t which = random.below(keys.size());
          const auto got = map.get(keys[which]);
          ASSERT_TRUE(got && *got && (*got)->value == answers.values[which]);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(*map.count({}, {}), 600u);
  });
  expect_all_came_back();
}

TEST_P(NodeConcurrencyTest, ThreadsShareOneSnapshotAndWriteMeanwhile) {
  start();
  Store store = connect();
  Map map = *store.open_map("default");
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(map.put("k" + std::to_string(i), "old"));
  const auto snapshot = map.snapshot();
  ASSERT_TRUE(snapshot);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(static_cast<std::uint64_t>(t));
      for (std::uint64_t round = 0; round < scaled(2'000); ++round) {
        const std::string key = "k" + std::to_string(random.below(300));
        ASSERT_TRUE(map.put(key, "new"));
        const auto got = snapshot->get(key);
        ASSERT_TRUE(got && *got && (*got)->value == "old");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A worker that never spins, and clients that sleep before each answer: any wake-up that is lost
// costs until the next sweep, and these are far apart.
TEST_P(NodeConcurrencyTest, NeitherSideSleepsThroughWhatComes) {
  config_.node.spin_us = 0;
  config_.node.sweep_asleep_ms = 60'000;
  config_.node.sweep_ms = 60'000;
  start();
  const std::uint64_t rounds = scaled(5'000);
  const std::uint64_t enough = rounds / 4;  // sleeps
  const auto& counts = node_->workers()[0]->counts();
  {
    const Store store = connect();
    Map map = *store.open_map("default");
    ASSERT_TRUE(map.put("key", "value"));
    // On a machine that is busy, which sleeps less often, more of them.
    for (std::uint64_t i = 0; i < rounds || (counts.sleeps <= enough && i < 50 * rounds); ++i) {
      const std::uint64_t sleeps = counts.sleeps;
      const auto got = map.get("key");
      ASSERT_TRUE(got && *got && (*got)->value == "value");
      // So that the worker falls asleep between two requests; it may have before this thread woke.
      // With a fabric it stays awake a little longer, for what is not acknowledged.
      const int spins_max = way_ == "unix" ? 100 : 2000;
      for (int spins = 0; spins < spins_max && counts.sleeps == sleeps; ++spins) {
        std::this_thread::yield();
      }
    }
  }
  EXPECT_GT(counts.sleeps, enough);
}

TEST_P(NodeConcurrencyTest, ClientsOfSeveralWorkersSeeOneMap) {
  config_.node.cores = 3;
  start();
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> applied{0};
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      Store store = connect();
      Map map = *store.open_map("default");
      Random random(static_cast<std::uint64_t>(t));
      for (std::uint64_t i = 0; i < scaled(3'000); ++i) {
        const auto inserted = map.insert("k" + std::to_string(random.below(2'000)), "v");
        ASSERT_TRUE(inserted) << message(inserted.error());
        if (inserted->applied) ++applied;
        if (i % 8 != 0) continue;
        WriteBatch batch;
        batch.put("batch" + std::to_string(t), std::to_string(i));
        ASSERT_TRUE(map.write(batch));
        const auto modified = map.modify("counter", [](std::optional<std::string_view> now) {
          return std::optional(now ? std::string(*now) + "." : std::string("."));
        });
        ASSERT_TRUE(modified);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Store store = connect();
  const Map map = *store.open_map("default");
  EXPECT_EQ(*map.count("k", "l"), applied);
  EXPECT_EQ(map.get("counter")->value().value.size(), 6 * ((scaled(3'000) + 7) / 8));
}

TEST_P(NodeConcurrencyTest, MapsComeAndGoWhileOthersReadThem) {
  config_.node.cores = 2;
  start();
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    Store store = connect();
    while (!stop) {
      auto map = store.open_map("passing");
      if (!map) continue;
      for (int i = 0; i < 20; ++i) {
        const auto put = map->put("k" + std::to_string(i), "v");
        EXPECT_TRUE(put || put.error().code == Code::not_found);
        const auto scanned = map->count({}, {});
        EXPECT_TRUE(scanned || scanned.error().code == Code::not_found);
      }
    }
  });
  on_a_thread([&] {
    Store store = connect();
    for (std::uint64_t i = 0; i < scaled(200); ++i) {
      ASSERT_TRUE(store.create_map("passing"));
      EXPECT_EQ(store.map_names()->size(), 2u);
      ASSERT_TRUE(store.drop_map("passing"));
    }
  });
  stop = true;
  reader.join();
  expect_all_came_back();
}

}  // namespace
}  // namespace espalier::test

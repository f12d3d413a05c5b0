// SPDX-License-Identifier: Apache-2.0
// Threads that use an ordered map and a hash map by transactions and by plain calls, in this
// process and on a node: their histories are linearizable, by versions and, of short ones, by a
// search.
//
// For the checkers both maps are one, whose keys begin with the map's name, and a transaction is a
// batch: what it has read are conditions that held.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "espalier/hash_map.hpp"
#include "espalier/transaction.hpp"
#include "tests/support/history.hpp"
#include "tests/support/node_fixture.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/version_replay.hpp"
#include "tests/support/wing_gong.hpp"

namespace espalier::test {
namespace {

/// One thread's calls, and what it saw of them.
class TransactionClient {
 public:
  TransactionClient(Store& store, Map map, HashMap hash, std::uint32_t thread, std::uint64_t seed,
                    std::uint64_t keys, std::atomic<std::uint64_t>& clock)
      : store_(store),
        map_(map),
        hash_(std::move(hash)),
        thread_(thread),
        random_(seed + thread),
        keys_(keys),
        clock_(clock) {}

  void work(std::uint64_t calls) {
    for (std::uint64_t i = 0; i < calls; ++i) step();
  }

  std::vector<Operation> seen;

 private:
  struct Key {
    bool hashed = false;
    std::string key;
    [[nodiscard]] std::string text() const { return (hashed ? "hash/" : "map/") + key; }
    friend bool operator==(const Key&, const Key&) = default;
  };
  Key draw_key() { return {random_.one_in(2), "key" + std::to_string(random_.below(keys_))}; }
  // No value is written twice, so that a search can tell them apart.
  std::string draw_value() {
    return std::to_string(thread_) + "." + std::to_string(count_++) +
           (random_.one_in(10) ? std::string(1500, 'x') : "");
  }

  void step() {
    Operation made;
    made.thread = thread_;
    const std::uint64_t what = random_.below(8);
    const Key key = draw_key();
    made.key = key.text();
    if (what < 2) {
      get(made, key);
    } else if (what < 4) {
      write(made, key, what == 3 && random_.one_in(2));
    } else {
      transact(made);
    }
    made.responded = clock_.fetch_add(1);
    seen.push_back(std::move(made));
  }
  void get(Operation& made, const Key& key) {
    made.kind = Kind::get;
    made.invoked = clock_.fetch_add(1);
    const auto found = key.hashed ? hash_.get(key.key) : map_.get(key.key);
    ASSERT_TRUE(found) << message(found.error());
    if (*found) made.items.push_back({made.key, (*found)->value, (*found)->version});
  }
  void write(Operation& made, const Key& key, bool erases) {
    made.kind = erases ? Kind::erase : Kind::put;
    if (!erases) made.value = draw_value();
    made.invoked = clock_.fetch_add(1);
    const auto written = erases       ? (key.hashed ? hash_.erase(key.key) : map_.erase(key.key))
                         : key.hashed ? hash_.put(key.key, *made.value)
                                      : map_.put(key.key, *made.value);
    ASSERT_TRUE(written) << message(written.error());
    made.applied = written->applied;
    made.existed = written->existed;
    made.version = written->version;
  }
  void transact(Operation& made) {
    made.kind = Kind::batch;
    Transaction transaction;
    std::vector<Key> keys;
    std::vector<Key> read;
    std::vector<std::uint32_t> checks;  // which steps they are
    for (std::uint64_t i = 0; i < 2 + random_.below(3); ++i) {
      const Key key = draw_key();
      if (std::ranges::find(keys, key) != keys.end()) continue;
      keys.push_back(key);
      add_steps(transaction, made, key, i == 0, read, checks);
    }
    made.invoked = clock_.fetch_add(1);
    const auto done = store_.transact(transaction);
    if (!done && done.error().code == Code::condition_failed) {
      const auto failed = std::ranges::find(checks, done.error().detail);
      ASSERT_NE(failed, checks.end());
      made.failed_condition = static_cast<std::uint32_t>(failed - checks.begin());
      return;
    }
    ASSERT_TRUE(done) << message(done.error());
    made.applied = true;
    made.version = done->version;
    ASSERT_EQ(done->found.size(), read.size());
    for (std::size_t i = 0; i < read.size(); ++i) {
      const std::optional<Found>& found = done->found[i];
      made.conditions.push_back({read[i].text(), found ? found->value : "", 0,
                                 found ? ConditionKind::value : ConditionKind::absent});
    }
  }
  void add_steps(Transaction& to, Operation& made, const Key& key, bool must_write,
                 std::vector<Key>& read, std::vector<std::uint32_t>& checks) {
    const std::string map = key.hashed ? hash_.name() : map_.name();
    if (random_.one_in(2)) {
      to.get(map, key.key);
      read.push_back(key);
    }
    if (random_.one_in(4)) {
      const bool present = random_.one_in(2);
      checks.push_back(static_cast<std::uint32_t>(to.steps().size()));
      if (present) {
        to.only_if_present(map, key.key);
      } else {
        to.only_if_absent(map, key.key);
      }
      made.conditions.push_back(
          {key.text(), "", 0, present ? ConditionKind::present : ConditionKind::absent});
    }
    if (!must_write && random_.one_in(3)) return;
    const bool erases = !must_write && random_.one_in(4);
    const std::string value = erases ? "" : draw_value();
    if (erases) {
      to.erase(map, key.key);
    } else {
      to.put(map, key.key, value);
    }
    made.writes.push_back({key.text(), value, erases});
  }

  Store& store_;
  Map map_;
  HashMap hash_;
  const std::uint32_t thread_;
  Random random_;
  const std::uint64_t keys_;
  std::atomic<std::uint64_t>& clock_;
  std::uint64_t count_ = 0;
};

/// "embedded", or as NodeFixture reaches a node.
class TransactionHistoriesConcurrency : public NodeFixture,
                                        public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (is_embedded()) {
      StoreOptions options;
      options.memory_bytes_max = std::uint64_t{256} << 20;
      options.huge_pages = false;
      options.shared_clock = true;
      store_.emplace(*Store::open(options));
      return;
    }
    reach_by(GetParam());
    config_.node.shared_clock = !reads_by_itself();
    start();
    store_.emplace(connect());
  }
  [[nodiscard]] static bool is_embedded() { return std::string(GetParam()) == "embedded"; }
  /// By walks elsewhere: of maps that name their group.
  [[nodiscard]] bool reads_by_itself() const { return config_.node.one_sided; }

  History run(const std::string& name, std::uint32_t threads, std::uint64_t calls,
              std::uint64_t keys, std::uint64_t seed) {
    const std::string group = reads_by_itself() ? "bank" : "";
    auto map =
        store_->create_map(name + "m", {.node_bytes = 512, .log_bytes = 128, .group = group});
    auto hash = store_->create_hash_map(name + "h", {.partitions = 2, .group = group});
    EXPECT_TRUE(map && hash);
    History history;
    if (!map || !hash) return history;
    std::atomic<std::uint64_t> clock{1};
    std::vector<TransactionClient> clients;
    for (std::uint32_t i = 0; i < threads; ++i) {
      clients.emplace_back(*store_, *map, *hash, i, seed, keys, clock);
    }
    {
      std::vector<std::jthread> working;
      for (TransactionClient& client : clients) {
        working.emplace_back([&client, calls] { client.work(calls); });
      }
    }
    for (TransactionClient& client : clients) {
      for (Operation& each : client.seen) {
        EXPECT_EQ(malformed(each).value_or(""), "");
        history.operations.push_back(std::move(each));
      }
    }
    EXPECT_TRUE(store_->drop_map(name + "m"));
    EXPECT_TRUE(store_->drop_hash_map(name + "h"));
    return history;
  }

  std::optional<Store> store_;
};

TEST_P(TransactionHistoriesConcurrency, LongOnesAreLinearizableInTheOrderOfVersions) {
  const std::uint64_t seed = seed_from_environment(73);
  SCOPED_TRACE(seed_text(seed));
  const std::uint64_t calls = steps_or(scaled(is_embedded() ? 4000 : 800));
  const History history = run("long", 3, calls, 6, seed);
  EXPECT_EQ(replay_versions(history).value_or(""), "");
}

TEST_P(TransactionHistoriesConcurrency, ShortOnesHaveALinearization) {
  const std::uint64_t seed = seed_from_environment(74);
  SCOPED_TRACE(seed_text(seed));
  const auto rounds = steps_or(scaled(is_embedded() ? 60 : 15));
  std::uint64_t unknown = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const History history = run("short" + std::to_string(round), 3, 10, 2, seed + round);
    const CheckResult result = check_linearizable(history);
    ASSERT_NE(result.answer, Answer::no) << result.why;
    if (result.answer == Answer::unknown) ++unknown;
  }
  EXPECT_LE(unknown, rounds / 10);
}

// What is refused, over the wire and without.
TEST_P(TransactionHistoriesConcurrency, RefusalsSayWhatIsWrong) {
  auto map = store_->create_map("m");
  auto off = store_->create_hash_map("off", {.versions = false});
  ASSERT_TRUE(map && off);
  const auto refusal = [&](const Transaction& transaction) {
    const auto done = store_->transact(transaction);
    return done ? Error{} : done.error();
  };
  EXPECT_EQ(refusal(Transaction()).code, Code::invalid_argument);
  EXPECT_EQ(refusal(Transaction().put("m", "k", "1").get("none", "k")),
            (Error{Code::not_found, 0, 1}));
  EXPECT_EQ(refusal(Transaction().put("m", "k", "1").put("off", "k", "1")),
            (Error{Code::unsupported, 0, 1}));
  EXPECT_EQ(refusal(Transaction().put("m", "k", "1").only_if_present("m", "k")),
            (Error{Code::condition_failed, 0, 1}));
  EXPECT_EQ(refusal(Transaction().put("m", "", "1")).code, Code::key_too_long);
  EXPECT_EQ(refusal(Transaction().put("m", std::string(1000, 'k'), "1")).code, Code::key_too_long);
  Transaction many;
  for (int i = 0; i < 65; ++i) many.get("m", std::to_string(i));
  EXPECT_EQ(refusal(many).code, Code::invalid_argument);
  EXPECT_EQ(*map->get("k"), std::nullopt);
  // As much as it may have: more than the scheduler's thread does itself.
  Transaction large;
  for (int i = 0; i < 64; ++i) large.put("m", std::to_string(i), std::string(16'000, 'v'));
  const auto done = store_->transact(large);
  ASSERT_TRUE(done) << message(done.error());
  EXPECT_EQ((*map->get("63"))->value.size(), 16'000u);
  EXPECT_EQ((*map->get("0"))->version, done->version);
}

INSTANTIATE_TEST_SUITE_P(Ways, TransactionHistoriesConcurrency,
                         ::testing::Values("embedded", "unix", "shm", "shm_one_sided", "device"),
                         way_name);

}  // namespace
}  // namespace espalier::test

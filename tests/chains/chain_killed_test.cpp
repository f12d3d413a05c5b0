// SPDX-License-Identifier: Apache-2.0
// Two nodes in a chain, each a process: one is killed or stopped, and the client, which has both
// addresses, continues. Nothing that was acknowledged is lost, and a head that was stopped returns
// no stale data when it continues.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/temporary_folder.hpp"
#include "chain/membership/membership.hpp"
#include "espalier/espalier.hpp"
#include "espalier/hash_map.hpp"
#include "espalier/transaction.hpp"
#include "log/posix_folder.hpp"
#include "log/recovery.hpp"
#include "log/store_file.hpp"
#include "node/node.hpp"
#include "tests/chains/chain_of_two.hpp"
#include "tests/support/child.hpp"
#include "tests/support/node_config.hpp"

namespace espalier::test {
namespace {

class ChainOfTwoConcurrency : public ChainOfTwo {};

TEST_F(ChainOfTwoConcurrency, AClientGoesOnWhenTheHeadIsKilled) {
  auto store = connect_to_chain();
  ASSERT_TRUE(store) << message(store.error());
  auto map = until_done([&] { return store->open_map("default"); });
  ASSERT_TRUE(map) << message(map.error());
  constexpr int kPuts = 200;
  for (int i = 0; i < kPuts; ++i) {
    if (i == kPuts / 2) {
      members_[0].kill();
      members_[0].wait();
    }
    const auto done = until_done(
        [&] { return map->put("key" + std::to_string(i), "value" + std::to_string(i)); });
    ASSERT_TRUE(done) << i << ": " << message(done.error());
  }
  for (int i = 0; i < kPuts; ++i) {
    const auto found = until_done([&] { return map->get("key" + std::to_string(i)); });
    ASSERT_TRUE(found) << i << ": " << message(found.error());
    ASSERT_TRUE(*found) << i;
    EXPECT_EQ((*found)->value, "value" + std::to_string(i));
  }
  const auto view = membership()->read();
  ASSERT_TRUE(view && *view);
  EXPECT_EQ((*view)->epoch, 2u);
  ASSERT_EQ((*view)->members.size(), 1u);
  EXPECT_EQ((*view)->members[0].name, "b");
  std::string said;
  ASSERT_TRUE(members_[1].line().receive(said));
  EXPECT_EQ(said, "serves");
}

// Each transaction has the condition that the previous one was done once, over two maps of a group.
// The head is killed while one is in flight, and the next head returns the result of the first
// execution; it has the same group.
TEST_F(ChainOfTwoConcurrency, TransactionsAreDoneOnceWhenTheHeadIsKilled) {
  auto store = connect_to_chain();
  ASSERT_TRUE(store) << message(store.error());
  MapOptions ordered;
  ordered.group = "bank";
  HashMapOptions hashed;
  hashed.group = "bank";
  ASSERT_TRUE(until_done([&] { return store->create_map("ordered", ordered); }));
  ASSERT_TRUE(until_done([&] { return store->create_hash_map("hashed", hashed); }));
  constexpr int kTransactions = 200;
  auto client = until_done([&] { return store->make_numbered_client(); });
  ASSERT_TRUE(client) << message(client.error());
  std::atomic<int> done{0};
  std::string wrong;
  std::thread worker([&] {
    for (int i = 0; i < kTransactions && wrong.empty(); ++i) {
      Transaction next;
      next.get("ordered", "count").put("ordered", "count", std::to_string(i + 1));
      next.put("hashed", "count", std::to_string(i + 1));
      if (i == 0) {
        next.only_if_absent("hashed", "count");
      } else {
        next.only_if_value("hashed", "count", std::to_string(i));
      }
      // By the store's own numbers, and by those of a program.
      const auto transacted = i % 2 == 0
                                  ? store->transact(next)
                                  : until_done([&] { return store->transact(next, *client); });
      if (!transacted) wrong = std::to_string(i) + ": " + message(transacted.error());
      done = i + 1;
    }
    done = kTransactions;
  });
  for (const base::Stopwatch watch; done < kTransactions / 2 && watch.elapsed_ns() < kSoonNs;) {
    ::poll(nullptr, 0, 1);
  }
  members_[0].kill();
  members_[0].wait();
  worker.join();
  EXPECT_EQ(wrong, "");
  auto map = until_done([&] { return store->open_map("ordered"); });
  ASSERT_TRUE(map) << message(map.error());
  EXPECT_EQ(map->options().group, "bank");
  const auto count = until_done([&] { return map->get("count"); });
  ASSERT_TRUE(count && *count);
  EXPECT_EQ((*count)->value, std::to_string(kTransactions));
  const auto hash = until_done([&] { return store->open_hash_map("hashed"); });
  ASSERT_TRUE(hash) << message(hash.error());
  const auto same = until_done([&] { return hash->get("count"); });
  ASSERT_TRUE(same && *same);
  EXPECT_EQ((*same)->value, (*count)->value);
}

TEST_F(ChainOfTwoConcurrency, TheTailHasWhatTheHeadAcknowledged) {
  auto store = connect_to_chain();
  ASSERT_TRUE(store) << message(store.error());
  auto map = until_done([&] { return store->open_map("default"); });
  ASSERT_TRUE(map) << message(map.error());
  auto hash = until_done([&] { return store->create_hash_map("hash"); });
  ASSERT_TRUE(hash) << message(hash.error());
  constexpr std::size_t kPuts = 60;
  const std::string long_value(300'000, 'v');  // in a message of its own
  for (std::size_t i = 0; i < kPuts; ++i) {
    const std::string key = "key" + std::to_string(i);
    ASSERT_TRUE(until_done([&] { return map->put(key, i % 10 == 0 ? long_value : key); }));
    ASSERT_TRUE(until_done([&] { return hash->put(key, key); }));
  }
  kill_all();
  const std::vector<std::string> head = records_of("a");
  const std::vector<std::string> tail = records_of("b");
  EXPECT_GE(tail.size(), 2 * kPuts);
  ASSERT_LE(tail.size(), head.size());
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), head.begin()));
}

TEST_F(ChainOfTwoConcurrency, AHeadGoesOnAloneWhenTheTailIsKilled) {
  auto store = connect_to_chain();
  ASSERT_TRUE(store) << message(store.error());
  auto map = until_done([&] { return store->open_map("default"); });
  ASSERT_TRUE(map) << message(map.error());
  ASSERT_TRUE(until_done([&] { return map->put("key", "before"); }));
  members_[1].kill();
  members_[1].wait();
  const auto done = until_done([&] { return map->put("key", "behind"); });
  ASSERT_TRUE(done) << message(done.error());
  const auto view = membership()->read();
  ASSERT_TRUE(view && *view);
  ASSERT_EQ((*view)->members.size(), 1u);
  EXPECT_EQ((*view)->members[0].name, "a");
}

TEST_F(ChainOfTwoConcurrency, AHeadThatWasStoppedTellsNothingOld) {
  auto old = until_done([&] { return Store::connect("unix:" + socket_of("a")); });
  ASSERT_TRUE(old) << message(old.error());
  auto old_map = until_done([&] { return old->open_map("default"); });
  ASSERT_TRUE(old_map) << message(old_map.error());
  ASSERT_TRUE(until_done([&] { return old_map->put("key", "old"); }));
  ::kill(members_[0].process(), SIGSTOP);
  auto store = until_done([&] { return Store::connect("unix:" + socket_of("b")); });
  ASSERT_TRUE(store) << message(store.error());
  auto map = until_done([&] { return store->open_map("default"); });
  ASSERT_TRUE(map) << message(map.error());
  const auto kept = map->get("key");
  ASSERT_TRUE(kept && *kept);
  EXPECT_EQ((*kept)->value, "old");
  ASSERT_TRUE(until_done([&] { return map->put("key", "new"); }));
  ::kill(members_[0].process(), SIGCONT);
  for (int i = 0; i < 100; ++i) {
    const auto found = old_map->get("key");
    if (found) FAIL() << "it still answers: " << (*found ? (*found)->value : "nothing");
  }
  std::string said;
  ASSERT_TRUE(members_[0].line().receive(said));
  EXPECT_EQ(said, "serves");
  ASSERT_TRUE(members_[0].line().receive(said));
  EXPECT_EQ(said, "ended: it was left out of the chain");
}

// Without checkpoints of its own the tail's log would be at its bound, and nothing acknowledged.
TEST_F(ChainOfTwoConcurrency, AMemberBehindTheHeadLetsGoOfItsLog) {
  auto store = connect_to_chain();
  ASSERT_TRUE(store) << message(store.error());
  auto map = until_done([&] { return store->open_map("default"); });
  ASSERT_TRUE(map) << message(map.error());
  auto hash = until_done([&] { return store->create_hash_map("hash"); });
  ASSERT_TRUE(hash) << message(hash.error());
  constexpr std::size_t kKeys = 7;
  constexpr std::size_t kPuts = 3 * kLogBytesMax / 200'000;
  const auto value_of = [](std::size_t i) { return std::to_string(i) + std::string(200'000, 'v'); };
  for (std::size_t i = 0; i < kPuts; ++i) {
    const std::string key = "key" + std::to_string(i % kKeys);
    const auto put = until_done(
        [&] { return i % 2 == 0 ? map->put(key, value_of(i)) : hash->put(key, value_of(i)); });
    ASSERT_TRUE(put) << i << ": " << message(put.error());
  }
  EXPECT_LE(log_bytes_of("b"), kLogBytesMax + 2 * kSegmentBytes);
  // What it has by checkpoint and log, twice: in memory, and started again.
  members_[0].kill();
  members_[0].wait();
  const auto expect_all = [&] {
    for (std::size_t i = kPuts - 2 * kKeys; i < kPuts; ++i) {
      const std::string key = "key" + std::to_string(i % kKeys);
      const auto found =
          until_done([&] { return i % 2 == 0 ? value(*map, key) : value(*hash, key); });
      ASSERT_TRUE(found) << i << ": " << message(found.error());
      EXPECT_TRUE(*found == value_of(i)) << i;
    }
  };
  expect_all();
  members_[1].kill();
  members_[1].wait();
  begin("b");
  expect_all();
}

// Each call of it may be the first that meets the next head.
TEST_F(ChainOfTwoConcurrency, AHandleOfAHashMapOutlivesTheHead) {
  auto store = connect_to_chain();
  ASSERT_TRUE(store) << message(store.error());
  struct Handle {
    std::string name;
    HashMap map;
  };
  std::vector<Handle> handles;
  for (const char* const name : {"get", "put", "erase", "add", "walk", "stats", "pipeline"}) {
    auto made = until_done([&] { return store->create_hash_map(name); });
    ASSERT_TRUE(made) << message(made.error());
    ASSERT_TRUE(until_done([&] { return made->put("key", "value"); }));
    handles.push_back({name, *made});
  }
  auto dropped = until_done([&] { return store->create_hash_map("dropped"); });
  ASSERT_TRUE(dropped) << message(dropped.error());
  ASSERT_TRUE(until_done([&] { return store->drop_hash_map("dropped"); }));
  members_[0].kill();
  members_[0].wait();
  for (Handle& each : handles) {
    HashMap& map = each.map;
    SCOPED_TRACE(each.name);
    if (each.name == "put") {
      EXPECT_TRUE(until_done([&] { return map.put("key", "value"); }));
    }
    if (each.name == "add") {
      EXPECT_EQ(until_done([&] { return map.add("count", 3); }), 3u);
    }
    if (each.name == "stats") {
      EXPECT_TRUE(until_done([&] { return map.stats(); }));
    }
    if (each.name == "pipeline") {
      EXPECT_TRUE(until_done([&] { return Pipeline::open(map, 4); }));
    }
    if (each.name == "walk") {
      const ItemSink all = [](std::span<const Item>) { return true; };
      EXPECT_EQ(until_done([&] { return map.walk(all); }), 1u);
    }
    if (each.name == "erase") {
      const auto erased = until_done([&] { return map.erase("key"); });
      EXPECT_TRUE(erased && erased->applied);
      continue;
    }
    const auto found = until_done([&] { return value(map, "key"); });
    ASSERT_TRUE(found) << message(found.error());
    EXPECT_EQ(*found, "value");
  }
  const auto gone = until_done([&] { return dropped->get("key"); });
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::not_found);
}

TEST_F(ChainOfTwoConcurrency, OtherKindsAreRefused) {
  auto store = connect_to_chain();
  ASSERT_TRUE(store) << message(store.error());
  const auto made = until_done([&] { return store->create_sequencer("numbers"); });
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::unsupported);
  MapOptions less;
  less.durability = Durability::none;
  const auto none = until_done([&] { return store->create_map("cache", less); });
  ASSERT_FALSE(none) << "a chain would have it at its head alone";
  EXPECT_EQ(none.error().code, Code::unsupported);
}

TEST_F(ChainOfTwoConcurrency, AMemberThatWasLeftOutDoesNotStartAgain) {
  auto store = connect_to_chain();
  ASSERT_TRUE(store) << message(store.error());
  auto map = until_done([&] { return store->open_map("default"); });
  ASSERT_TRUE(map) << message(map.error());
  members_[0].kill();
  members_[0].wait();
  ASSERT_TRUE(until_done([&] { return map->put("key", "value"); }));
  std::string mistake;
  node::NodeOptions options;
  options.data_mistake = &mistake;
  node::Config config = node_config(folder_);
  config.node.socket = socket_of("a");
  config.data.dir = data_of("a");
  config.chain = {"a", (folder_ / "chain").string()};
  EXPECT_FALSE(node::Node::start(config, options));
  EXPECT_NE(mistake.find("has no member 'a' (any more)"), std::string::npos) << mistake;
}

}  // namespace
}  // namespace espalier::test

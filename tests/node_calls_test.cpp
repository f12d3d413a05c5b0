// SPDX-License-Identifier: Apache-2.0
// A node and its clients in one process: every call of the public interface, through rings.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "espalier/map.hpp"
#include "tests/support/node_fixture.hpp"
#include "tests/support/seed.hpp"

namespace espalier {
namespace {

class NodeTest : public test::NodeOverEachWay {
 protected:
  void SetUp() override {
    // The production setting: a missed wake-up costs noticeable time.
    const node::Config usual;
    config_.node.sweep_asleep_ms = usual.node.sweep_asleep_ms;
    start();
  }
};

INSTANTIATE_TEST_SUITE_P(By, NodeTest, ::testing::ValuesIn(test::kWays), test::way_name);

TEST_P(NodeTest, AnswersEveryCallOfAMap) {
  Store store = connect();
  auto map = store.open_map("default");
  ASSERT_TRUE(map) << message(map.error());
  EXPECT_EQ(map->name(), "default");
  EXPECT_EQ(map->max_key_bytes(), 460u);
  EXPECT_FALSE(map->get("plum")->has_value());
  EXPECT_TRUE(map->insert("plum", "blue")->applied);
  EXPECT_FALSE(map->insert("plum", "red")->applied);
  EXPECT_EQ(map->get("plum")->value().value, "blue");
  EXPECT_TRUE(map->update("plum", "red")->applied);
  EXPECT_FALSE(map->update("pear", "green")->applied);
  EXPECT_FALSE(map->put("pear", "green")->existed);
  EXPECT_EQ(map->floor("pease")->value().key, "pear");
  EXPECT_FALSE(map->floor("a")->has_value());
  EXPECT_EQ(*map->count("a", "z"), 2u);
  EXPECT_LE(*map->count_estimate("a", "z"), 10u);
  const auto grown = map->modify("plum", [](std::optional<std::string_view> now) {
    return std::optional<std::string>(std::string(*now) + "der");
  });
  ASSERT_TRUE(grown) << message(grown.error());
  EXPECT_EQ(map->get("plum")->value().value, "redder");
  EXPECT_TRUE(map->erase("pear")->existed);
  EXPECT_FALSE(map->erase("pear")->existed);
  EXPECT_EQ(map->stats()->items, 1u);
  EXPECT_EQ(map->get(std::string(461, 'k')).error(), (Error{Code::key_too_long, 0, 460}));
  EXPECT_EQ(map->get("").error(), (Error{Code::key_too_long, 0, 460}));
}

TEST_P(NodeTest, WritesBatchesOnConditions) {
  Store store = connect();
  Map map = *store.open_map("default");
  ASSERT_TRUE(map.put("a", "1"));
  WriteBatch batch;
  batch.put("b", "2").erase("a").only_if_present("a").only_if_absent("c");
  EXPECT_TRUE(map.write(batch)->applied);
  EXPECT_FALSE(map.get("a")->has_value());
  const auto refused = map.write(batch);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), (Error{Code::condition_failed, 0, 0}));
  WriteBatch by_value;
  by_value.put("b", "3").only_if_value("b", "2");
  EXPECT_TRUE(map.write(by_value));
  EXPECT_EQ(map.write(WriteBatch{}).error().code, Code::invalid_argument);
}

std::vector<std::pair<std::string, std::string>> all_items(const Map& map,
                                                           ScanOptions options = {}) {
  std::vector<std::pair<std::string, std::string>> items;
  const auto count = map.scan(
      {}, {},
      [&](std::span<const Item> run) {
        for (const Item& item : run) items.emplace_back(item.key, item.value);
        return true;
      },
      options);
  EXPECT_TRUE(count) << message(count.error());
  EXPECT_EQ(*count, items.size());
  return items;
}

TEST_P(NodeTest, ScansMoreThanARingHolds) {
  Store store = connect();
  Map map = *store.open_map("default");
  std::map<std::string, std::string> model;
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = "key" + std::to_string(i * 7919 % 100'000);
    model[key] = std::string(static_cast<std::size_t>(i % 40), 'v');
    ASSERT_TRUE(map.put(key, model[key]));
  }
  std::vector<std::pair<std::string, std::string>> expected(model.begin(), model.end());
  EXPECT_EQ(all_items(map), expected);
  EXPECT_EQ(*map.count({}, {}), expected.size());
  std::reverse(expected.begin(), expected.end());
  EXPECT_EQ(all_items(map, {.reverse = true}), expected);
  expected.resize(1234);
  EXPECT_EQ(all_items(map, {.limit = 1234, .reverse = true}), expected);
  std::size_t taken = 0;
  const auto some = map.scan("key5", {}, [&](std::span<const Item> run) {
    taken += run.size();
    return taken < 10;
  });
  ASSERT_TRUE(some);
  EXPECT_GE(taken, 10u);
  EXPECT_LT(taken, 5'000u);
}

TEST_P(NodeTest, CarriesValuesOfAllSizes) {
  Store store = connect();
  Map map = *store.open_map("default");
  for (const std::size_t bytes : {0u, 1u, 15u, 16u, 17u, 31u, 32u, 33u, 60u, 92u, 93u, 300u, 4096u,
                                  40'000u, 70'000u, 1'000'000u, 16u << 20}) {
    std::string value(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i) value[i] = static_cast<char>(i * 131 >> 3);
    const auto put = map.put("sized", value);
    ASSERT_TRUE(put) << bytes << ": " << message(put.error());
    const auto got = map.get("sized");
    ASSERT_TRUE(got) << bytes << ": " << message(got.error());
    ASSERT_EQ(got->value().value.size(), bytes);
    ASSERT_EQ(got->value().value, value) << bytes;
  }
  EXPECT_EQ(map.put("sized", std::string((16u << 20) + 1, 'x')).error().code, Code::value_too_long);
}

TEST_P(NodeTest, MakesOpensListsAndDropsMaps) {
  Store store = connect();
  MapOptions small;
  small.node_bytes = 1024;
  small.log_bytes = 256;
  const auto made = store.create_map("small", small);
  ASSERT_TRUE(made) << message(made.error());
  EXPECT_EQ(made->options().node_bytes, 1024u);
  EXPECT_EQ(store.create_map("small", small).error().code, Code::already_exists);
  EXPECT_EQ(*store.map_names(), (std::vector<std::string>{"default", "small"}));
  EXPECT_EQ(store.open_map("nothing").error().code, Code::not_found);
  small.node_bytes = 1000;
  EXPECT_EQ(store.create_map("odd", small).error().code, Code::invalid_argument);
  Map map = *made;
  ASSERT_TRUE(map.put("a", "b"));
  EXPECT_TRUE(store.drop_map("small"));
  EXPECT_EQ(store.drop_map("small").error().code, Code::not_found);
  EXPECT_EQ(map.get("a").error().code, Code::not_found);
}

TEST_P(NodeTest, ReadsSnapshots) {
  Store store = connect();
  Map map = *store.open_map("default");
  ASSERT_TRUE(map.put("a", "1"));
  {
    const auto snapshot = map.snapshot();
    ASSERT_TRUE(snapshot) << message(snapshot.error());
    ASSERT_TRUE(map.put("a", "2"));
    ASSERT_TRUE(map.put("b", "2"));
    EXPECT_EQ(snapshot->get("a")->value().value, "1");
    EXPECT_FALSE(snapshot->get("b")->has_value());
    EXPECT_EQ(snapshot->floor("z")->value().key, "a");
    EXPECT_EQ(*snapshot->scan({}, {}, [](std::span<const Item>) { return true; }), 1u);
    EXPECT_EQ(map.stats()->snapshots, 1u);
  }
  EXPECT_EQ(map.stats()->snapshots, 0u);
}

// While a sink runs, its own answer has not ended; its reads use another session.
TEST_P(NodeTest, SinksMayReadTheSameSnapshotAndMap) {
  Store store = connect();
  Map map = *store.open_map("default");
  constexpr int kItems = 3000;  // several messages
  for (int i = 0; i < kItems; ++i) {
    ASSERT_TRUE(map.put("key" + std::to_string(10'000 + i), std::string(40, 'v')));
  }
  const auto snapshot = map.snapshot();
  ASSERT_TRUE(snapshot) << message(snapshot.error());
  int seen = 0;
  const auto count = [](std::span<const Item>) { return true; };
  const auto sink = [&](std::span<const Item> items) {
    for (const Item& item : items) {
      if (++seen % 100 != 0) continue;
      const auto same = snapshot->get(item.key);
      EXPECT_TRUE(same && *same && (*same)->value == item.value);
      EXPECT_EQ(*snapshot->count({}, {}), kItems);
      EXPECT_EQ(*snapshot->scan(item.key, {}, count, {.limit = 2}), seen == kItems ? 1u : 2u);
      const auto now = map.get(item.key);
      EXPECT_TRUE(now && *now && (*now)->value == item.value);
    }
    return true;
  };
  EXPECT_EQ(*snapshot->scan({}, {}, sink), kItems);
  EXPECT_EQ(seen, kItems);
  EXPECT_EQ(snapshot->get("key10007")->value().value, std::string(40, 'v'));
}

struct Gather final : Handler {
  void done(const Completion& completion) override {
    ASSERT_TRUE(completion.ok) << message(completion.error);
    if (completion.op == Op::get) {
      found[completion.tag] = completion.found ? std::string(completion.value) : "none";
    }
    ++completed;
  }
  std::map<std::uint64_t, std::string> found;
  std::size_t completed = 0;
};

TEST_P(NodeTest, KeepsManyInFlight) {
  Store store = connect();
  Map map = *store.open_map("default");
  auto pipeline = Pipeline::open(map, 64);
  ASSERT_TRUE(pipeline) << message(pipeline.error());
  std::vector<std::string> keys;
  for (int i = 0; i < 5'000; ++i) keys.push_back("k" + std::to_string(i));
  std::vector<Request> puts;
  std::vector<Request> gets;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Request request;
    request.tag = i;
    request.key = keys[i];
    request.op = Op::get;
    gets.push_back(request);
    request.op = Op::put;
    request.value = keys[i];
    if (i % 3 != 0) puts.push_back(request);
  }
  Gather gather;
  pipeline->run(puts, gather);
  EXPECT_EQ(gather.completed, puts.size());
  pipeline->run(gets, gather);
  EXPECT_EQ(gather.completed, puts.size() + gets.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(gather.found[i], i % 3 != 0 ? keys[i] : "none");
  }
}

TEST_P(NodeTest, ASinkReadsAndWritesWhileItsScanGoesOn) {
  Store store = connect();
  Map map = *store.open_map("default");
  Map other = *store.create_map("other");
  const std::string value(100, 'v');
  for (int i = 0; i < 5'000; ++i) ASSERT_TRUE(map.put("key" + std::to_string(10'000 + i), value));
  std::uint64_t copied = 0;
  const auto scanned = map.scan({}, {}, [&](std::span<const Item> run) {
    for (const Item& item : run) {
      const auto got = map.get(item.key);
      EXPECT_TRUE(got && *got && (*got)->value == item.value);
      EXPECT_TRUE(other.put(item.key, item.value));
      ++copied;
    }
    return true;
  });
  ASSERT_TRUE(scanned) << message(scanned.error());
  EXPECT_EQ(copied, 5'000u);
  EXPECT_EQ(*other.count({}, {}), 5'000u);
}

TEST_P(NodeTest, APipelineThatIsNotPolledKeepsNobodyWaiting) {
  Store store = connect();
  Map map = *store.open_map("default");
  const std::string value(1'000, 'v');
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(map.put("key" + std::to_string(10'000 + i), value));
  auto pipeline = Pipeline::open(map, 256);
  ASSERT_TRUE(pipeline);
  std::vector<Request> scans(300);
  for (Request& scan : scans) scan.op = Op::scan;
  Gather gather;
  pipeline->submit(scans, gather);
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(map.get("key" + std::to_string(10'000 + i))->has_value());
  }
  ASSERT_TRUE(map.put("big", std::string(1 << 20, 'b')));
  while (pipeline->poll() != 0) {
  }
  EXPECT_EQ(gather.completed, scans.size());
}

// Answers to cancels of a pipeline may come when its lane serves another, which has more places.
TEST_P(NodeTest, ALaneOfScansThatWereStoppedServesThoseAfterThem) {
  Store store = connect();
  Map map = *store.open_map("default");
  const std::string value(500, 'v');
  std::vector<std::string> keys;
  for (int i = 0; i < 500; ++i) keys.push_back("key" + std::to_string(10'000 + i));
  for (const std::string& key : keys) ASSERT_TRUE(map.put(key, value));
  struct Stopping final : Handler {
    bool items(std::uint64_t, std::span<const Item>) override { return false; }
    void done(const Completion& completion) override { EXPECT_TRUE(completion.ok); }
  };
  for (std::uint32_t round = 0; round < 300; ++round) {
    const std::uint32_t places = 1 + round % 4;
    {
      auto scans = *Pipeline::open(map, places);
      std::vector<Request> requests(places);
      for (Request& scan : requests) {
        scan.op = Op::scan;
        if (round % 2 == 1) scan.limit = 3;  // ends with its only answer
      }
      Stopping handler;
      scans.run(requests, handler);
    }
    auto gets = *Pipeline::open(map, 8);
    std::vector<Request> requests(8);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i].tag = i;
      requests[i].op = Op::get;
      requests[i].key = keys[i];
    }
    Gather gather;
    gets.run(requests, gather);
    ASSERT_EQ(gather.completed, requests.size());
    for (const auto& [tag, found] : gather.found) ASSERT_EQ(found, value) << tag << ", " << round;
    ASSERT_TRUE(map.snapshot());
  }
}

TEST_P(NodeTest, AStoreThatGoesTakesItsConnectionsWithIt) {
  {
    Store store = connect();
    Map map = *store.open_map("default");
    std::vector<Snapshot> snapshots;
    constexpr std::size_t count = 40;  // each has a connection
    while (snapshots.size() < count) snapshots.push_back(std::move(*map.snapshot()));
    EXPECT_EQ(map.stats()->snapshots, count);
    EXPECT_GE(node_->connections(), 3u);
  }
  // This thread lives on, and uses no other store.
  while (node_->connections() != 0) std::this_thread::yield();
}

TEST_P(NodeTest, SnapshotsThatAreRefusedCostNothing) {
  Store store = connect();
  MapOptions options;
  options.versions = false;
  Map map = *store.create_map("unversioned", options);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(map.snapshot().error().code, Code::unsupported);
  // Over a fabric each lane has a connection of its own.
  EXPECT_EQ(node_->connections(), way_ == "unix" ? 1u : 2u);
}

TEST_P(NodeTest, ALostNodeFailsCallsAndTheNextNodeIsFoundByName) {
  Store store = connect();
  Map map = *store.open_map("default");
  ASSERT_TRUE(map.put("a", "1"));
  node_.reset();
  // A client that gets the node's terminate message with nothing in flight tries to reconnect.
  const auto lost = map.get("a");
  ASSERT_FALSE(lost);
  EXPECT_TRUE(lost.error().code == Code::connection_lost ||
              (way_ != "unix" && lost.error().code == Code::system))
      << message(lost.error());
  EXPECT_EQ(map.get("a").error().code, Code::system);  // no server listens
  EXPECT_EQ(map.stats().error().code, Code::system);   // and not zeros, or no maps
  EXPECT_EQ(store.map_names().error().code, Code::system);
  EXPECT_EQ(store.memory_bytes().error().code, Code::unsupported);
  config_.maps = {{"other", MapOptions{}}, {"default", MapOptions{}}};
  start();
  const auto after = map.get("a");
  ASSERT_TRUE(after) << message(after.error());
  EXPECT_FALSE(after->has_value());  // another node, and its own map of this name
}

}  // namespace
}  // namespace espalier

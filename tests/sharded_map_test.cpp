// SPDX-License-Identifier: Apache-2.0
// A map over several nodes in this process: its refusals, how clients find the nodes when these
// join, leave and lie, and what is left when one is gone.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kinds/map/write/map_core.hpp"
#include "kinds/map/write/map_object.hpp"
#include "shards/sharding.hpp"
#include "tests/support/node_fixture.hpp"

namespace espalier::test {
namespace {

class ShardedMapTest : public NodeFixture {
 protected:
  void SetUp() override {
    reach_by("sharded");
    start();
  }
  /// Makes map "s" with the border "m", and opens it by one of its nodes.
  Map make(Store& store, const std::string& border = "m") {
    make_sharded("s", {}, {border});
    auto map = store.open_map("s");
    if (!map) throw std::runtime_error(message(map.error()));
    return *map;
  }
  [[nodiscard]] Store connect_to(std::size_t shard) const {
    auto store = Store::connect(shard_addresses()[shard]);
    EXPECT_TRUE(store);
    return std::move(*store);
  }
  /// Makes a shard on one node by a shard map of one's own.
  [[nodiscard]] bool make_shard(std::size_t node, const wire::ShardMap& map) {
    node::Node& on = node == 0 ? *node_ : *others_[node - 1];
    return tree::create_shard(on.store(), "s", {}, map).has_value();
  }
  /// Items of one node's part.
  [[nodiscard]] std::uint64_t items_on(std::size_t node) {
    node::Node& on = node == 0 ? *node_ : *others_[node - 1];
    const auto core = on.catalog().open<tree::MapCore>("s");
    return core ? (*core)->items.sum() : 0;
  }
  static std::string keys_of(const Result<std::uint64_t>& count, const std::string& said) {
    return count ? said : message(count.error());
  }
  static std::string scan(const Map& map, ScanOptions options = {}, std::string_view low = {},
                          std::string_view high = {}) {
    std::string said;
    const auto count = map.scan(
        low, high,
        [&](std::span<const Item> items) {
          for (const Item& item : items) said.append(item.key).append(" ");
          return true;
        },
        options);
    return keys_of(count, said);
  }
};

TEST_F(ShardedMapTest, IsOneMapByEachOfItsNodes) {
  Store first = connect_to(0);
  Store second = connect_to(1);
  Map map = make(first);
  ASSERT_TRUE(map.put("a", "1"));
  ASSERT_TRUE(map.put("z", "2"));
  const auto other = second.open_map("s");
  ASSERT_TRUE(other);
  EXPECT_EQ((*other->get("a"))->value, "1");
  EXPECT_EQ(scan(*other), "a z ");
  EXPECT_EQ(scan(*other, {.reverse = true}), "z a ");
  EXPECT_EQ(scan(*other, {.from_floor = true}, "n"), "a z ");
  EXPECT_EQ((*other->floor("y"))->key, "a");
  EXPECT_EQ(other->stats()->items, 2u);
  EXPECT_EQ(items_on(0), 1u);
  EXPECT_EQ(items_on(1), 1u);
}

TEST_F(ShardedMapTest, RefusesBatchesAcrossBorders) {
  Store store = connect_to(0);
  Map map = make(store);
  WriteBatch across;
  across.put("a", "1").put("z", "1");
  EXPECT_EQ(map.write(across).error(), (Error{Code::crosses_shards, 0, 0}));
  WriteBatch condition;
  condition.put("a", "1").only_if_absent("z");
  EXPECT_EQ(map.write(condition).error().code, Code::crosses_shards);
  EXPECT_EQ(*map.count({}, {}), 0u);
  WriteBatch right;
  right.put("n", "1").put("z", "1").only_if_absent("m");
  EXPECT_TRUE(map.write(right));
  EXPECT_EQ(*map.count({}, {}), 2u);
}

TEST_F(ShardedMapTest, SnapshotsAreOfAllShardsAndTheirVersionsRise) {
  Store store = connect_to(1);
  Map map = make(store);
  Version last = 0;
  std::vector<Snapshot> held;
  for (int i = 0; i < 20; ++i) {
    const std::string number = std::to_string(i);
    ASSERT_TRUE(map.put(i % 2 == 0 ? "a" : "z", number));
    auto snapshot = map.snapshot();
    ASSERT_TRUE(snapshot);
    EXPECT_GT(snapshot->version(), last);
    last = snapshot->version();
    held.push_back(std::move(*snapshot));
  }
  for (int i = 1; i < 20; ++i) {
    const Snapshot& snapshot = held[static_cast<std::size_t>(i)];
    EXPECT_EQ((*snapshot.get("a"))->value, std::to_string(i - i % 2));
    EXPECT_EQ((*snapshot.get("z"))->value, std::to_string(i - 1 + i % 2));
    EXPECT_EQ(*snapshot.count({}, {}), 2u);
    EXPECT_EQ((*snapshot.floor("y"))->key, "a");
  }
  held.clear();
  EXPECT_EQ(held_snapshots(), 0u);
}

TEST_F(ShardedMapTest, IsDroppedEverywhere) {
  Store store = connect_to(0);
  make(store);
  ASSERT_TRUE(store.drop_map("s"));
  EXPECT_EQ(connect_to(1).open_map("s").error().code, Code::not_found);
  EXPECT_EQ(store.drop_map("s").error().code, Code::not_found);
}

// The handle, its store, its pipeline: all follow the new borders.
TEST_F(ShardedMapTest, AClientFollowsAMapThatWasMadeAgainWithOtherBorders) {
  Store store = connect_to(0);
  Map map = make(store);
  auto pipeline = Pipeline::open(map, 4);
  ASSERT_TRUE(pipeline);
  ASSERT_TRUE(map.put("a", "1"));
  ASSERT_TRUE(map.put("n", "1"));
  Store other = connect_to(1);
  ASSERT_TRUE(other.drop_map("s"));
  EXPECT_EQ(map.get("a").error().code, Code::not_found);
  make_sharded("s", {}, {"p"});
  ASSERT_TRUE(map.put("n", "2"));
  EXPECT_EQ(items_on(0), 1u);
  EXPECT_EQ(items_on(1), 0u);
  // For each call that may come first.
  const std::vector<std::function<bool()>> calls = {
      [&] { return map.get("n").has_value(); },
      [&] { return scan(map).empty(); },
      [&] { return map.count({}, {}) == 0u; },
      [&] { return map.count_estimate({}, {}).has_value(); },
      [&] { return map.floor("z").has_value(); },
      [&] { return map.snapshot().has_value(); },
      [&] { return map.write(WriteBatch().put("n", "1").put("o", "1")).has_value(); },
      [&] { return map.add("x", 1) == 1u; },
      [&] { return map.compare_and_set("n", std::nullopt, "1").has_value(); },
      [&] {
        struct Done final : Handler {
          void done(const Completion& completion) override { ok = completion.ok; }
          bool ok = false;
        } done;
        Request put;
        put.op = Op::put;
        put.key = "n";
        put.value = "1";
        pipeline->run({&put, 1}, done);
        return done.ok;
      },
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    SCOPED_TRACE(i);
    ASSERT_TRUE(other.drop_map("s"));
    make_sharded("s", {}, {i % 2 == 0 ? "b" : "y"});
    EXPECT_TRUE(calls[i]());
  }
}

TEST_F(ShardedMapTest, ANodeThatIsGoneTakesItsShardAlone) {
  Store store = connect_to(0);
  Map map = make(store);
  ASSERT_TRUE(map.put("a", "1"));
  ASSERT_TRUE(map.put("z", "1"));
  others_.clear();
  const Error lost{Code::connection_lost, 0, 2};
  EXPECT_EQ(map.get("z").error(), lost);
  EXPECT_EQ(map.put("z", "2").error(), lost);
  EXPECT_EQ(map.count({}, {}).error(), lost);
  EXPECT_EQ(map.snapshot().error(), lost);
  EXPECT_EQ(map.stats().error(), lost);
  EXPECT_EQ(map.scan({}, {}, [](std::span<const Item>) { return true; }).error(), lost);
  EXPECT_NE(message(lost).find("shard 1"), std::string::npos);
  EXPECT_EQ((*map.get("a"))->value, "1");
  EXPECT_TRUE(map.put("b", "1"));
  EXPECT_EQ(*map.count({}, "m"), 2u);
  EXPECT_EQ(scan(map, {.limit = 2}), "a b ");
  const auto report = client::report_shards(address(), "s");
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->shards[0].agrees);
  EXPECT_FALSE(report->shards[1].stats);
  EXPECT_EQ(store.drop_map("s").error(), lost);
  EXPECT_EQ(store.open_map("s").error().code, Code::not_found);
}

TEST_F(ShardedMapTest, AClientThatCameByOneNodeOutlivesIt) {
  Store store = connect_to(1);
  Map map = make(store);
  ASSERT_TRUE(map.put("a", "1"));
  others_.clear();
  EXPECT_EQ((*map.get("a"))->value, "1");
  EXPECT_EQ(map.get("z").error().code, Code::connection_lost);
}

// --- nodes that lie ------------------------------------------------------------------------------

TEST_F(ShardedMapTest, ANodeCannotStandForAnother) {
  const auto addresses = shard_addresses();
  wire::ShardMap map;
  map.uid = 1;
  map.shards = {{"", addresses[0]}, {"m", addresses[1]}};
  wire::ShardMap lie = map;
  struct Case {
    const char* what;
    std::function<void()> lie;
    Code code;
  };
  const std::vector<Case> cases = {
      {"it has the same shard", [&] { lie.own = 0; }, Code::corrupt},
      {"other borders", [&] { lie.shards[1].low = "n"; }, Code::corrupt},
      {"other addresses", [&] { lie.shards[0].address = "unix:/elsewhere"; }, Code::corrupt},
      {"more shards", [&] { lie.shards.push_back({"x", "unix:/elsewhere"}); }, Code::corrupt},
      {"another map", [&] { lie.uid = 2; }, Code::wrong_shard},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    lie = map;
    lie.own = 1;
    each.lie();
    ASSERT_TRUE(make_shard(0, map));
    ASSERT_TRUE(make_shard(1, lie));
    Store store = connect_to(0);
    auto opened = store.open_map("s");
    ASSERT_TRUE(opened);
    EXPECT_TRUE(opened->get("a"));
    EXPECT_EQ(opened->get("z").error().code, each.code);
    EXPECT_FALSE(opened->count({}, {}));
    const auto report = client::report_shards(addresses[0], "s");
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->shards[0].agrees);
    EXPECT_FALSE(report->shards[1].agrees);
    ASSERT_TRUE(node_->catalog().drop("s", ObjectKind::map));
    ASSERT_TRUE(others_[0]->catalog().drop("s", ObjectKind::map));
  }
}

TEST_F(ShardedMapTest, AddressesThatLeadNowhereCostOneShard) {
  const auto addresses = shard_addresses();
  for (const char* const nowhere : {"nonsense", "unix:/no/such/socket", "roce://", "unix:"}) {
    SCOPED_TRACE(nowhere);
    wire::ShardMap map;
    map.uid = 1;
    map.shards = {{"", addresses[0]}, {"m", nowhere}};
    ASSERT_TRUE(make_shard(0, map));
    Store store = connect_to(0);
    auto opened = store.open_map("s");
    ASSERT_TRUE(opened);
    EXPECT_TRUE(opened->put("a", "1"));
    EXPECT_FALSE(opened->put("z", "1"));
    EXPECT_FALSE(opened->snapshot());
    EXPECT_EQ(scan(*opened, {}, {}, "m"), "a ");
    ASSERT_TRUE(node_->catalog().drop("s", ObjectKind::map));
  }
}

// Two nodes that name each other as what they are not.
TEST_F(ShardedMapTest, ACircleEnds) {
  const auto addresses = shard_addresses();
  wire::ShardMap map;
  map.uid = 1;
  map.shards = {{"", addresses[1]}, {"m", addresses[0]}};
  ASSERT_TRUE(make_shard(0, map));
  map.own = 0;
  ASSERT_TRUE(make_shard(1, map));
  Store store = connect_to(0);
  auto opened = store.open_map("s");
  ASSERT_TRUE(opened);
  EXPECT_TRUE(opened->put("a", "1"));  // of the shard by which we came, whatever its address
  EXPECT_EQ(opened->put("z", "1").error().code, Code::corrupt);
}

// --- making one ----------------------------------------------------------------------------------

TEST_F(ShardedMapTest, IsMadeOnAllNodesOrOnNone) {
  const auto addresses = shard_addresses();
  Store second = connect_to(1);
  ASSERT_TRUE(second.create_map("s"));
  const auto taken = client::create_shards("s", {}, {{"", addresses[0]}, {"m", addresses[1]}});
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().shard, 1u);
  EXPECT_EQ(taken.error().error.code, Code::already_exists);
  EXPECT_TRUE(taken.error().left.empty());
  EXPECT_EQ(connect_to(0).open_map("s").error().code, Code::not_found);
  const auto nowhere = client::create_shards("s", {}, {{"", addresses[0]}, {"m", "unix:/nowhere"}});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().shard, 1u);
  EXPECT_EQ(connect_to(0).open_map("s").error().code, Code::not_found);
  EXPECT_FALSE(client::create_shards("s", {}, {{"a", addresses[0]}}));
  MapOptions wrong;
  wrong.node_bytes = 1000;
  EXPECT_FALSE(client::create_shards("t", wrong, {{"", addresses[0]}, {"m", addresses[1]}}));
  ASSERT_TRUE(client::create_shards("one", {}, {{"", addresses[0]}}));
  const auto one = connect_to(0).open_map("one");
  EXPECT_TRUE(one);
}

}  // namespace
}  // namespace espalier::test

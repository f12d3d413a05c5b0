// SPDX-License-Identifier: Apache-2.0
// A device before a real node: its answers are the host's, and the host is asked no more than it
// must be.
#include "device/device.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "channel/rings/node_address.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "client/store_impl.hpp"
#include "device/testing/device_fixture.hpp"
#include "engine/connection.hpp"
#include "kinds/map/offload/held_snapshots.hpp"
#include "kinds/map/walk/next_step.hpp"
#include "kinds/map/write/leaf_write.hpp"
#include "kinds/map/write/map_core.hpp"
#include "node/numbers_format.hpp"

namespace espalier::device {
namespace {

using Items = std::vector<std::pair<std::string, std::string>>;

template <class Reader>
Items scan(const Reader& reader, std::string_view low, std::string_view high,
           ScanOptions options = {}) {
  Items items;
  const auto scanned = reader.scan(
      low, high,
      [&](std::span<const Item> some) {
        for (const Item& item : some) items.emplace_back(item.key, item.value);
        return true;
      },
      options);
  EXPECT_TRUE(scanned) << message(scanned.error());
  return items;
}

class DeviceTest : public DeviceFixture {
 protected:
  // Waits until what is asked through the device is answered, and returns that. Meanwhile the host
  // is away, or the device's own socket, for it begins anew.
  static Result<std::optional<Found>> get_when_there(const Map& map, const std::string& key) {
    for (;;) {
      auto found = map.get(key);
      if (found) return found;
      const Code code = found.error().code;
      if (code != Code::connection_lost && code != Code::system) return found;
    }
  }
};

TEST_F(DeviceTest, AGetIsAWalkOfItsOwn) {
  start();
  Store host = connect_to_host();
  Map at_host = *host.create_map("m", {.node_bytes = 1024, .log_bytes = 256});
  std::map<std::string, std::string> model;
  base::Random random(7);
  for (int i = 0; i < 3000; ++i) {
    const std::string key = "key" + std::to_string(random.below(3000));
    const std::string value(random.below(30) == 0 ? random.below(9000) : random.below(60), 'v');
    ASSERT_TRUE(at_host.put(key, value));
    model[key] = value;
  }
  Store device = connect_to_device();
  Map at_device = *device.open_map("m");
  for (int i = 0; i < 2000; ++i) {
    const std::string key = "key" + std::to_string(random.below(3000));
    const auto found = at_device.get(key);
    ASSERT_TRUE(found) << message(found.error());
    const auto expected = model.find(key);
    ASSERT_EQ(found->has_value(), expected != model.end()) << key;
    if (*found) {
      ASSERT_EQ((*found)->value, expected->second);
    }
  }
  EXPECT_EQ(host_was_asked(wire::OffloadId::get), 0u);
  EXPECT_EQ(scan(at_device, "", ""), Items(model.begin(), model.end()));
  EXPECT_EQ(scan(at_device, "key1", "key2", {.reverse = true}),
            scan(at_host, "key1", "key2", {.reverse = true}));
  EXPECT_EQ(at_device.count("key1", "key2"), at_host.count("key1", "key2"));
  EXPECT_EQ((*at_device.floor("key15z"))->key, (*at_host.floor("key15z"))->key);
  EXPECT_EQ(host_was_asked(wire::OffloadId::scan), 0u);
}

TEST_F(DeviceTest, ItFollowsWhatMoves) {
  start();
  Store host = connect_to_host();
  Map at_host = *host.create_map("m", {.node_bytes = 1024, .log_bytes = 256});
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(at_host.put("key" + std::to_string(i), "old"));
  Store device = connect_to_device();
  Map at_device = *device.open_map("m");
  ASSERT_TRUE(at_device.get("key1"));
  const std::uint64_t opened = host_was_asked(wire::OffloadId::one_sided_open);
  EXPECT_GT(opened, 0u);
  base::Random random(8);
  for (int i = 0; i < 5000; ++i) {
    const std::string key = "key" + std::to_string(random.below(2500));  // new ones too
    const std::string value = std::to_string(i);
    ASSERT_TRUE(at_host.put(key, value));
    const auto found = at_device.get(key);
    ASSERT_TRUE(found) << message(found.error());
    ASSERT_TRUE(*found) << key;
    ASSERT_EQ((*found)->value, value);
  }
  EXPECT_EQ(host_was_asked(wire::OffloadId::feed_open), opened) << "for each map that it opened";
}

// One answer of 64 is counted by its leaf, and the counts go to the host with a lease's renewal.
TEST_F(DeviceTest, TheHostLearnsWhichLeavesAreRead) {
  start();
  Store host = connect_to_host();
  Map at_host = *host.create_map("m", {.node_bytes = 1024, .log_bytes = 256});
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(at_host.put("key" + std::to_string(i), "v"));
  Store device = connect_to_device();
  Map at_device = *device.open_map("m");
  const auto map = host_->catalog().open<tree::MapCore>("m");
  ASSERT_TRUE(map);
  std::vector<tree::LeafHeat::Count> counts;
  for (int i = 0; i < 10'000'000 && counts.empty(); ++i) {
    ASSERT_TRUE(at_device.get("key77"));
    if (i % 64 == 0) counts = (*map)->heat.most_read(10, base::monotonic_ns());
  }
  ASSERT_EQ(counts.size(), 1u) << "one leaf was read";
  EXPECT_EQ(host_was_asked(wire::OffloadId::get), 0u);
  tree::Cursor cursor;
  cursor.key.assign("key77");
  cursor.read_version = (*map)->clock.released();
  auto slot = *host_->store().epochs.join();
  slot.enter();
  EXPECT_EQ((*map)->view(tree::find_leaf(**map, cursor, {})).lid(), counts.front().lid);
  slot.exit();
}

TEST_F(DeviceTest, WhatItCannotDoTheHostDoes) {
  start();
  Store store = connect_to_device();
  Map map = *store.create_map("made here");
  EXPECT_EQ(*store.map_names(), *connect_to_host().map_names());
  ASSERT_TRUE(map.put("key", "value"));
  EXPECT_EQ((*map.get("key"))->value, "value");
  EXPECT_TRUE(map.erase("key")->applied);
  EXPECT_FALSE(*map.get("key"));
  WriteBatch batch;
  batch.put("a", "1").put("b", "2");
  ASSERT_TRUE(map.write(batch));
  EXPECT_TRUE(store.sequence("s", 3));
  EXPECT_EQ(map.stats()->items, 2u);
  // Long messages, too.
  const std::string longest(std::size_t{16} << 20, 'l');
  ASSERT_TRUE(map.put("long", longest));
  const auto found = map.get("long");
  ASSERT_TRUE(found) << message(found.error());
  EXPECT_TRUE((*found)->value == longest);
  ASSERT_TRUE(store.drop_map("made here"));
  EXPECT_EQ(map.get("a").error().code, Code::not_found);
  EXPECT_EQ(store.open_map("made here").error().code, Code::not_found);
}

TEST_F(DeviceTest, SnapshotsAreTheHosts) {
  start();
  Store store = connect_to_device();
  Map map = *store.create_map("m", {.node_bytes = 1024});
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(map.put("key" + std::to_string(i), "old"));
  {
    const auto snapshot = map.snapshot();
    ASSERT_TRUE(snapshot) << message(snapshot.error());
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(map.put("key" + std::to_string(i), "new"));
    EXPECT_EQ((*snapshot->get("key7"))->value, "old");
    EXPECT_EQ((*snapshot->floor("key7"))->value, "old");
    const Items items = scan(*snapshot, "", "");
    ASSERT_EQ(items.size(), 500u);
    for (const auto& [key, value] : items) ASSERT_EQ(value, "old");
    EXPECT_EQ(*snapshot->count("", ""), 500u);
    EXPECT_EQ((*map.get("key7"))->value, "new");
  }
}

/// Says that each read may begin at one place.
struct OneHint final : client::HintSource {
  std::uint64_t hint_of(const Request&) noexcept override { return bits; }
  std::uint64_t bits = 0;
};

/// What gets have found.
struct Values final : Handler {
  void done(const Completion& completion) override {
    seen.push_back(completion.found ? std::string(completion.value) : "(nothing)");
  }
  std::vector<std::string> seen;
};

// READ data may look like a node without being one: a client may store a leaf's bytes in a value.
TEST_F(DeviceTest, NoHintOfAClientIsFollowed) {
  constexpr std::uint64_t kBlock = wire::kBlockBytes;
  constexpr std::uint32_t kGeneration = 7;
  start();
  Store store = connect_to_device();
  Map map = *store.create_map("m", {.node_bytes = 1024});
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(map.put("key" + std::to_string(i), "honest"));
  const auto core = host_->catalog().open<tree::MapCore>("m");
  ASSERT_TRUE(core);
  auto slot = *host_->store().epochs.join();
  const auto leaf_of = [&](std::string_view key) {
    tree::Cursor cursor;
    cursor.key.assign(key);
    cursor.read_version = (*core)->clock.released();
    return (*core)->view(tree::find_leaf(**core, cursor, {}));
  };
  slot.enter();
  std::string image(reinterpret_cast<const char*>(leaf_of("key77").bytes()), 1024);
  slot.exit();
  for (std::size_t at = 0; (at = image.find("honest")) != std::string::npos;) {
    image.replace(at, 6, "forged");
  }
  std::memcpy(image.data() + offsetof(wire::NodeHeader, generation), &kGeneration,
              sizeof kGeneration);
  std::string value(kBlock - sizeof(wire::ValueHeader), '.');
  while (value.size() < 65'536) value += image;
  ASSERT_TRUE(map.put("large", value));
  slot.enter();
  tree::SearchKey large;
  large.assign("large");
  const tree::NewestState state = tree::newest_state(**core, leaf_of("large"), large);
  ASSERT_TRUE(state.out_of_line);
  wire::ValueRef reference{};
  std::memcpy(&reference, state.value.data(), sizeof reference);
  slot.exit();

  const auto rings = *client::ThreadRings::open(
      *client::connect_to(*client::parse_node_address("unix:" + device_config_.node.socket)));
  client::RemoteRequests requests(*rings, 1);
  OneHint hint;
  client::Scope scope;
  scope.map = (*core)->id;
  scope.max_key_bytes = (*core)->geometry.key_bytes_max;
  scope.hints = &hint;
  Request get;
  get.op = Op::get;
  get.key = "key77";
  for (std::uint64_t at = 0; at < 65'536; at += kBlock) {
    hint.bits = wire::Ref::make(wire::Ref{reference.ref}.offset() + at, kGeneration).bits;
    Values values;
    requests.submit({&get, 1}, values, scope);
    requests.drain();
    ASSERT_EQ(values.seen, std::vector<std::string>{"honest"}) << "at byte " << at;
  }
  EXPECT_EQ((*map.get("key77"))->value, "honest");
  EXPECT_EQ(host_was_asked(wire::OffloadId::get), 0u);
}

TEST_F(DeviceTest, AMapWithoutVersionsIsReadByTheHost) {
  start();
  Store store = connect_to_device();
  Map map = *store.create_map("m", {.versions = false});
  for (int i = 0; i < 600; ++i) ASSERT_TRUE(map.put("key" + std::to_string(i), "value"));
  EXPECT_EQ((*map.get("key7"))->value, "value");
  EXPECT_EQ(scan(map, "", "").size(), 600u);
  EXPECT_EQ(*map.count("", ""), 600u);
  EXPECT_GT(host_was_asked(wire::OffloadId::get), 0u);
}

// The counters of both sides count the feed that the device follows.
TEST_F(DeviceTest, TheFeedIsCounted) {
  start();
  Store host = connect_to_host();
  Map at_host = *host.create_map("m", {.node_bytes = 512, .log_bytes = 64});
  const auto key = [](int i) { return "key" + std::to_string(i); };
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(at_host.put(key(i), "old"));
  Store device = connect_to_device();
  Map at_device = *device.open_map("m");
  const auto of_device = [this] {
    return device_->with_node([](const node::Node* node) { return node::numbers_of(*node); });
  };
  // Until the feed has reported moves of nodes that the device knows.
  for (int i = 0; of_device().value("device_feed_replaced") < 10; i = (i + 7) % 2000) {
    ASSERT_TRUE(at_host.put(key(i), "new"));
    ASSERT_TRUE(*at_device.get(key((i + 1000) % 2000)));
  }
  const node::NodeNumbers numbers = of_device();
  const std::uint64_t changes = numbers.value("device_feed_changes");
  EXPECT_GE(changes, numbers.value("device_feed_replaced"));
  EXPECT_GE(numbers.value("device_feed_behind"), 1u);
  EXPECT_GE(numbers.value("device_feed_reads"), 1u);
  EXPECT_GT(numbers.value("device_round_trips"), 0u);
  EXPECT_GT(numbers.value("device_read_bytes"), numbers.value("device_round_trips"));
  EXPECT_GT(numbers.value("device_hits"), 0u);
  for (const wire::SampledObject& map : node::numbers_and_samples_of(*host_).sampled.objects) {
    if (map.name != "m") continue;
    EXPECT_EQ(wire::sample_value(map, "feed_followers"), 1u);
    EXPECT_GE(wire::sample_value(map, "feed_entries"), changes);
  }
  EXPECT_FALSE(node::numbers_of(*host_).find("device_round_trips"));
}

// What operators ask a device for is about the device: its workers, its clients, its cache.
TEST_F(DeviceTest, ItTellsItsOwnNumbers) {
  start();
  Store host = connect_to_host();
  Map at_host = *host.create_map("m", {});
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(at_host.put("key" + std::to_string(i), "value"));
  Store device = connect_to_device();
  Map at_device = *device.open_map("m");
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(*at_device.get("key" + std::to_string(i)));
  const auto asked = [](const Store& store) {
    const auto bytes = client::StoreImpl::of(store).node_numbers();
    EXPECT_TRUE(bytes);
    return bytes ? *node::decode(*bytes) : node::NodeNumbers{};
  };
  const auto gets = [](const node::NodeNumbers& numbers) {
    for (const node::OffloadNumbers& offload : numbers.offloads) {
      if (offload.id == wire::OffloadId::get) return offload.requests;
    }
    return std::uint64_t{0};
  };
  const node::NodeNumbers of_device = asked(device);
  EXPECT_GT(of_device.value("device_round_trips"), 0u);
  EXPECT_GE(gets(of_device), 100u);
  EXPECT_EQ(of_device.value("objects", "map"), 0u);
  const node::NodeNumbers of_host = asked(host);
  EXPECT_FALSE(of_host.find("device_round_trips"));
  EXPECT_LT(gets(of_host), 100u);
  EXPECT_NE(of_host.value("objects", "map"), 0u);
}

// However many the device's other clients hold: its one connection to its host holds more than a
// client's may.
TEST_F(DeviceTest, EachClientHasTheSnapshotsThatItWouldHaveAtTheHost) {
  start();
  std::vector<Store> stores;
  std::vector<Snapshot> snapshots;
  stores.push_back(connect_to_device());
  ASSERT_TRUE(stores.back().create_map("m", {}));
  for (int client = 0; client < 3; ++client) {
    if (client != 0) stores.push_back(connect_to_device());
    Map map = *stores.back().open_map("m");
    for (std::size_t i = 0; i < offload::HeldSnapshots::kMost; ++i) {
      ASSERT_TRUE(map.put("k", std::to_string(snapshots.size())));
      auto snapshot = map.snapshot();
      ASSERT_TRUE(snapshot) << "client " << client << ", " << i << ": "
                            << message(snapshot.error());
      snapshots.push_back(std::move(*snapshot));
    }
  }
  for (std::size_t i = 0; i < snapshots.size(); ++i) {
    const auto read = snapshots[i].get("k");
    ASSERT_TRUE(read && *read) << i;
    EXPECT_EQ((*read)->value, std::to_string(i));
  }
}

/// Holds answers against what was put.
class Expected final : public Handler {
 public:
  explicit Expected(const std::vector<std::string>& values) : values_(values) {}
  void done(const Completion& completion) override {
    const bool right =
        completion.ok && completion.found && completion.value == values_[completion.tag];
    right ? ++right_ : ++wrong_;
  }
  [[nodiscard]] std::uint64_t right() const { return right_; }
  [[nodiscard]] std::uint64_t wrong() const { return wrong_; }

 private:
  const std::vector<std::string>& values_;
  std::uint64_t right_ = 0;
  std::uint64_t wrong_ = 0;
};

class BalancedDevice : public DeviceTest {
 protected:
  static constexpr std::uint64_t kKeys = 10'000;
  static constexpr std::size_t kGets = 8'000;

  static std::string key_of(std::uint64_t number) { return "key" + std::to_string(number); }
  void fill() {
    start_host();
    Store host = connect_to_host();
    Map map = *host.create_map("m", {.node_bytes = 512, .log_bytes = 64});
    for (std::uint64_t from = 0; from < kKeys; from += 100) {
      WriteBatch batch;
      for (std::uint64_t i = from; i < from + 100; ++i) batch.put(key_of(i), "v" + key_of(i));
      ASSERT_TRUE(map.write(batch));
    }
  }
  /// What the device has done.
  struct Done {
    std::uint64_t descents = 0;
    std::uint64_t remembered_bytes = 0;
    std::uint64_t bytes = 0;
    std::uint64_t balanced = 0;
    std::uint64_t forwarded = 0;
  };
  Done done() {
    const auto numbers =
        device_->with_node([](const node::Node* node) { return node::numbers_of(*node); });
    return {numbers.value("device_descents"), numbers.value("device_remembered_bytes"),
            numbers.value("device_read_bytes"), numbers.value("device_balanced"),
            numbers.value("device_forwarded")};
  }
  /// What so many gets at a time took, of a device with this weight that knows all nodes; or none,
  /// so that its walks take long.
  Done cost_of_gets(std::uint32_t balance, std::uint32_t in_flight, bool knows = true) {
    device_.reset();
    device_config_.node.balance = balance;
    start_device();
    Store device = connect_to_device();
    const Map map = *device.open_map("m");
    if (knows) {
      EXPECT_EQ(scan(map, "", "").size(), kKeys);
    }
    base::Random random(base::seed_from_environment(8));
    std::vector<std::string> keys;
    std::vector<std::string> values;
    for (std::size_t i = 0; i < kGets; ++i) {
      keys.push_back(key_of(random.below(kKeys)));
      values.push_back("v" + keys.back());
    }
    std::vector<Request> gets(kGets);
    for (std::size_t i = 0; i < kGets; ++i) gets[i] = {.op = Op::get, .tag = i, .key = keys[i]};
    auto pipeline = Pipeline::open(map, in_flight);
    EXPECT_TRUE(pipeline);
    Expected expected(values);
    pipeline->run(gets, expected);
    const Done before = when_counted(kGets);
    EXPECT_EQ(expected.right(), kGets);
    EXPECT_EQ(expected.wrong(), 0u);
    if (!knows) return before;
    pipeline->run(gets, expected);
    EXPECT_EQ(expected.right(), 2 * kGets);
    EXPECT_EQ(expected.wrong(), 0u);
    Done after = when_counted(2 * kGets);
    after.descents -= before.descents;
    after.remembered_bytes -= before.remembered_bytes;
    after.bytes -= before.bytes;
    after.balanced -= before.balanced;
    after.forwarded -= before.forwarded;
    return after;
  }

 private:
  // A worker updates its statistics now and then.
  Done when_counted(std::uint64_t gets) {
    for (;;) {
      const Done now = done();
      if (now.descents + now.forwarded >= gets) return now;
    }
  }
};

// Under load it reads nodes that it has; no answer is another.
TEST_F(BalancedDevice, ABalancerChangesWhereNodesAreReadAndNoAnswer) {
  fill();
  const auto remembered = [](const Done& numbers) {
    return static_cast<double>(numbers.remembered_bytes) / static_cast<double>(numbers.descents);
  };
  const Done off = cost_of_gets(0, 256);
  EXPECT_EQ(off.balanced, 0u);
  const Done on = cost_of_gets(1, 256);
  EXPECT_GT(on.balanced, kGets / 100);
  EXPECT_LT(remembered(on), remembered(off));
}

// While all its walks are busy the host does gets, balancer or not; and none else.
TEST_F(BalancedDevice, SaturatedItForwardsReadsToo) {
  fill();
  EXPECT_EQ(cost_of_gets(0, 32).forwarded, 0u);
  EXPECT_EQ(host_was_asked(wire::OffloadId::get), 0u);
  const Done saturated = cost_of_gets(0, 256, false);
  EXPECT_GT(saturated.forwarded, 0u);
  EXPECT_LT(saturated.forwarded, kGets) << "it did nothing itself";
  EXPECT_GE(host_was_asked(wire::OffloadId::get), saturated.forwarded);
}

TEST_F(BalancedDevice, NothingIsDividedWhileFewWait) {
  fill();
  const Done few = cost_of_gets(1, 4);
  EXPECT_EQ(few.balanced, 0u);
  EXPECT_EQ(few.forwarded, 0u);
}

// It answers soon that the host is gone, never with what it knew, and another node in the host's
// place is another node for its clients too.
TEST_F(DeviceTest, AHostThatIsReplacedIsAnotherNode) {
  start();
  Store store = connect_to_device();
  Map map = *store.create_map("m");
  ASSERT_TRUE(map.put("key", "value"));
  ASSERT_TRUE(map.get("key"));
  host_.reset();
  EXPECT_EQ(map.get("key").error().code, Code::connection_lost);
  EXPECT_EQ(map.put("key", "other").error().code, Code::connection_lost);
  start_host();
  {
    Store host = connect_to_host();
    ASSERT_TRUE(host.create_map("first"));  // has the number that "m" had
    Map made = *host.create_map("m");
    ASSERT_TRUE(made.put("key", "of the other node"));
  }
  const auto found = get_when_there(map, "key");
  ASSERT_TRUE(found) << message(found.error());
  ASSERT_TRUE(*found);
  EXPECT_EQ((*found)->value, "of the other node");
  EXPECT_EQ(device_->replaced(), 1u);
}

}  // namespace
}  // namespace espalier::device
